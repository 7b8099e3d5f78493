package routing

import (
	"context"
	"time"
)

// A Wish is what whoever leads a caller on asks of the room they are led to, such as the step of a flow; zero where nothing is asked.
type Wish struct {
	Priority *int          // in a queue; nil: the queue's
	MaxWait  time.Duration // in a queue; 0: as long as the queue says
	Ring     time.Duration // how long telephones ring; 0: as is usual
	Greeting string        // the sound of a mailbox; "": its own
	Longest  time.Duration // a message; 0: as long as the mailbox says
	Back     bool          // who is found by nobody is wanted back: a queue's own overflow is not followed, nor a person's voicemail
}

type wishKey struct{}

func withWish(ctx context.Context, w Wish) context.Context {
	return context.WithValue(ctx, wishKey{}, w)
}

// wish is what is asked of the room that leads a caller now. It does not go along where the room leads them on by lead.
func wish(ctx context.Context) Wish {
	w, _ := ctx.Value(wishKey{}).(Wish)
	return w
}
