package ivr

import (
	"cmp"
	"context"
	"strings"
	"time"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/contactcenter/routing"
)

// Flow steps that route callers to users, queues and mailboxes.

// routeAway routes the caller to a destination outside the flow. Unless the caller was answered or is gone, it
// returns the caller to the flow's stage.
func (w *flowRun) routeAway(ctx context.Context, to string, wish routing.RouteOptions) (outcome string) {
	outcome = w.s.cfg.Router.RouteWithOptions(ctx, w.v, to, wish)
	if outcome == routing.Answered || outcome == routing.CallerGone {
		return outcome
	}
	if w.v.Loop(ctx, nil) != nil || w.enterIVR(ctx) != nil {
		return routing.CallerGone
	}
	return outcome
}

// queue lets the caller wait in a queue. A queue that cannot be entered, such as a deleted one, has the outcome
// "overflow".
func (w *flowRun) queue(ctx context.Context, x *flow.Queue) (outcome string) {
	wish := routing.RouteOptions{Priority: x.Priority, ReturnUnanswered: true}
	if x.MaxWait != nil {
		wish.MaxWait = time.Duration(*x.MaxWait) * time.Second
	}
	outcome = w.routeAway(ctx, "queue:"+x.QueueID, wish)
	w.flowContext.Sought = "overflow"
	switch outcome {
	case routing.NoResult:
		w.flowContext.Sought = "no_agents"
		return outcome
	case routing.Callback:
		w.flowContext.Sought = ""
		return outcome
	case routing.CallerGone, routing.Answered, routing.Timeout, routing.Overflow:
		return outcome
	}
	if routing.IsFinal(outcome) {
		return outcome
	}
	w.problem = "the queue could not be entered"
	return "overflow"
}

// transfer connects the caller with a destination. If the caller leaves a message there, or is called back, the
// transfer succeeded: the flow ends.
func (w *flowRun) transfer(ctx context.Context, x *flow.Transfer) (outcome string) {
	if !strings.HasPrefix(x.To, "flow:") { // that flow may be for everybody
		w.seekPerson()
	}
	outside := w.s.cfg.Router.IsDialled(x.To) && !strings.HasPrefix(x.To, "ext:")
	if outside {
		w.v.SetTransferredTo(ctx, x.To)
	}
	outcome = w.routeAway(ctx, x.To, routing.RouteOptions{RingTimeout: time.Duration(x.Timeout) * time.Second})
	if routing.IsFinal(outcome) {
		return outcome
	}
	if outside {
		w.v.SetTransferredTo(ctx, "")
	}
	w.seekPerson()
	w.problem = outcome
	return "failed"
}

// voicemail records a message.
func (w *flowRun) voicemail(ctx context.Context, x *flow.Voicemail) (outcome string) {
	w.flowContext.Sought = cmp.Or(w.flowContext.Sought, "no_answer") // a mailbox is a person's
	mailbox := x.Mailbox
	if mailbox == flow.ThisFlow {
		mailbox = w.program.FlowID
	}
	outcome = w.routeAway(ctx, "voicemail:"+mailbox, routing.RouteOptions{Greeting: x.GreetingAudioID,
		MaxMessage: time.Duration(x.MaxSeconds) * time.Second})
	if outcome != routing.CallerGone && outcome != routing.LeftMessage && outcome != routing.NoResult {
		w.problem, outcome = "no message could be taken: "+outcome, routing.NoResult
	}
	return outcome
}
