package routing

import (
	"context"
	"time"
)

// RouteOptions holds the options that a caller of a route handler sets, such as a step of a flow. A zero field sets
// nothing.
type Wish struct {
	Priority *int          // in a queue; nil: the queue's priority
	MaxWait  time.Duration // in a queue; 0: the queue's longest wait
	Ring     time.Duration // how long phones ring; 0: the default of the destination
	Greeting string        // audio id of the greeting of a mailbox; "": the mailbox's own
	Longest  time.Duration // the longest voicemail; 0: the mailbox's limit
	Back     bool          // return an unanswered caller: follow neither a queue's overflow nor a user's voicemail
}

type wishKey struct{}

func withWish(ctx context.Context, w Wish) context.Context {
	return context.WithValue(ctx, wishKey{}, w)
}

// routeOptionsOf returns the options for the current route handler. They do not apply to a destination to which the
// handler routes the caller with routeTo.
func wish(ctx context.Context) Wish {
	w, _ := ctx.Value(wishKey{}).(Wish)
	return w
}
