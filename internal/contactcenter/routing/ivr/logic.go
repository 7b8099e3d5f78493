package ivr

import (
	"context"
	"fmt"
	"maps"
	"time"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/contactcenter/routing"
	"soniq/internal/telephony/call"
)

// hours returns whether the business hours are open now, in the time zone of the flow.
func (w *flowRun) hours(x *flow.Hours) (outcome string) {
	outcome = x.Outcome(w.s.cfg.Clock.Now(), w.zone)
	w.flowContext.AfterHours = outcome != "open"
	if w.flowContext.AfterHours {
		w.v.SetMissed("after_hours")
	}
	return outcome
}

// condition evaluates an expression. An expression that fails counts as false.
func (w *flowRun) condition(ctx context.Context, x *flow.Condition) (outcome string) {
	truth, err := x.IsTrue(w.scope(ctx, x.Expression))
	if err != nil {
		w.problem = "the expression could not be worked out: " + err.Error()
	}
	if truth {
		return "true"
	}
	return "false"
}

// set sets variables for the following steps.
func (w *flowRun) set(ctx context.Context, x *flow.Set) (outcome string) {
	values := x.Values(w.scope(ctx, fmt.Sprint(x.Variables)))
	maps.Copy(w.flowContext.Variables, values)
	return "done"
}

// lookUp looks up the caller's contact and stores it in a variable.
func (w *flowRun) lookUp(ctx context.Context, x *flow.ContactLookup) (outcome string) {
	if !w.lookUpCaller(ctx, time.Duration(x.TimeoutMS)*time.Millisecond) {
		if ctx.Err() != nil {
			return routing.CallerGone
		}
		return "miss"
	}
	w.flowContext.Variables[x.Variable] = w.flowContext.Contact
	return "hit"
}

// tag adds tags to the call.
func (w *flowRun) tag(ctx context.Context, x *flow.Tag) (outcome string) {
	in := &call.TagIn{}
	in.ID, in.Body.Tags = w.v.Info().CallID, x.Tags
	ctx, cancel := w.writeContext(ctx)
	defer cancel()
	if _, err := w.s.cfg.Calls.TagCall(ctx, in); err != nil {
		w.problem = "the call was not tagged: " + err.Error()
	}
	return "done"
}
