package routing

import (
	"context"
	"strings"
	"time"

	"soniq/internal/contactcenter/flow"
)

// Flow steps that route callers to users, queues and mailboxes.

// routeAway routes the caller to a destination outside the flow. Unless the caller was answered or is gone, it
// returns the caller to the flow's stage.
func (w *walk) away(ctx context.Context, to string, wish Wish) (outcome string) {
	outcome = w.s.leadWith(ctx, w.v, to, wish)
	if outcome == Answered || outcome == Gone {
		return outcome
	}
	if w.v.Loop(ctx, nil) != nil || w.enter(ctx) != nil {
		return Gone
	}
	return outcome
}

// queue lets the caller wait in a queue. A queue that cannot be entered, such as a deleted one, has the outcome
// "overflow".
func (w *walk) queue(ctx context.Context, x *flow.Queue) (outcome string) {
	wish := Wish{Priority: x.Priority, Back: true}
	if x.MaxWait != nil {
		wish.MaxWait = time.Duration(*x.MaxWait) * time.Second
	}
	outcome = w.away(ctx, "queue:"+x.QueueID, wish)
	switch outcome {
	case Gone, Answered, Timeout, Overflow, Empty, Callback:
		return outcome
	}
	if done(outcome) {
		return outcome
	}
	w.problem = "the queue could not be entered"
	return "overflow"
}

// transfer connects the caller with a destination. If the caller leaves a message there, or is called back, the
// transfer succeeded: the flow ends.
func (w *walk) transfer(ctx context.Context, x *flow.Transfer) (outcome string) {
	w.missing("no_answer")
	outside := w.s.room(x.To) == nil && !strings.HasPrefix(x.To, "ext:")
	if outside {
		w.v.Transferred(ctx, x.To)
	}
	outcome = w.away(ctx, x.To, Wish{Ring: time.Duration(x.Timeout) * time.Second})
	if done(outcome) {
		return outcome
	}
	if outside {
		w.v.Transferred(ctx, "")
	}
	w.problem = outcome
	return "failed"
}

// voicemail records a message.
func (w *walk) voicemail(ctx context.Context, x *flow.Voicemail) (outcome string) {
	mailbox := x.Mailbox
	if mailbox == flow.ThisFlow {
		mailbox = w.p.FlowID
	}
	outcome = w.away(ctx, "voicemail:"+mailbox, Wish{Greeting: x.GreetingAudioID, Longest: time.Duration(x.MaxSeconds) * time.Second})
	if outcome != Gone && outcome != Left && outcome != Empty {
		w.problem, outcome = "no message could be taken: "+outcome, Empty
	}
	return outcome
}
