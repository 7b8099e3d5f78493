package routing

import (
	"context"
	"fmt"
	"maps"
	"time"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/telephony/call"
)

// hours returns whether the business hours are open now, in the time zone of the flow.
func (w *walk) hours(x *flow.Hours) (outcome string) {
	outcome = x.Outcome(w.s.Now(), w.zone)
	w.trip.closed = outcome != "open"
	if w.trip.closed {
		w.v.Missed("after_hours")
	}
	return outcome
}

// condition evaluates an expression. An expression that fails counts as false.
func (w *walk) condition(ctx context.Context, x *flow.Condition) (outcome string) {
	truth, err := x.Truth(w.scope(ctx, x.Expression))
	if err != nil {
		w.problem = "the expression could not be worked out: " + err.Error()
	}
	if truth {
		return "true"
	}
	return "false"
}

// set sets variables for the following steps.
func (w *walk) set(ctx context.Context, x *flow.Set) (outcome string) {
	values := x.Values(w.scope(ctx, fmt.Sprint(x.Variables)))
	maps.Copy(w.trip.variables, values)
	return "done"
}

// lookUp looks up the caller's contact and stores it in a variable.
func (w *walk) lookUp(ctx context.Context, x *flow.ContactLookup) (outcome string) {
	if !w.find(ctx, time.Duration(x.TimeoutMS)*time.Millisecond) {
		if ctx.Err() != nil {
			return Gone
		}
		return "miss"
	}
	w.trip.variables[x.Variable] = w.trip.contact
	return "hit"
}

// tag adds tags to the call.
func (w *walk) tag(ctx context.Context, x *flow.Tag) (outcome string) {
	in := &call.TagIn{}
	in.ID, in.Body.Tags = w.v.Info().CallID, x.Tags
	ctx, cancel := w.writing(ctx)
	defer cancel()
	if _, err := w.s.Calls.TagCall(ctx, in); err != nil {
		w.problem = "the call was not tagged: " + err.Error()
	}
	return "done"
}
