package routing

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/pbx"
)

// flowRun is one caller's run through a flow. It keeps the program that was published when the caller entered.
type walk struct {
	s        *Service
	v        *pbx.Visit
	p        *flow.Program
	org      string
	trip     *trip
	zone     *time.Location
	language string
	problem  string // why the current step failed, if no outcome of the step says it
}

// runFlow runs the published version of a flow for a caller.
func (s *Service) flow(ctx context.Context, v *pbx.Visit, id string, l pbx.Lead) (outcome string) {
	w, err := s.walk(ctx, v, l.Org, id)
	if ctx.Err() != nil {
		return Gone
	}
	if err != nil {
		if !db.IsNone(err) {
			s.Log.Error("flow not entered", "call", v.Info().CallID, "flow", id, "err", err)
		}
		v.Step("flow.failed", map[string]any{"flow_id": id, "reason": reasonOf(err)})
		return Failed
	}
	v.Step("flow.entered", map[string]any{"flow_id": id, "name": w.p.Name, "version": w.p.Version})
	if err := w.enter(ctx); err != nil {
		return Gone
	}
	defer w.mask()()
	return w.run(ctx)
}

// maskKeys stops the recording of pressed keys while the caller is in a flow that asks for masked digits. The
// returned function ends that.
func (w *walk) mask() func() {
	if !w.masks() {
		return func() {}
	}
	w.trip.masking++
	w.v.Mask(true)
	return func() {
		if w.trip.masking--; w.trip.masking == 0 {
			w.v.Mask(false)
		}
	}
}

func reasonOf(err error) string {
	if db.IsNone(err) {
		return "there is no such flow that is published"
	}
	return "internal error"
}

// newFlowRun reads the program, the language and the time zone for a run, and writes the flow to the call record.
func (s *Service) walk(ctx context.Context, v *pbx.Visit, org, id string) (*walk, error) {
	p, err := s.Flows.Program(ctx, org, id)
	if err != nil {
		return nil, err
	}
	o, err := s.Orgs.Get(ctx, org)
	if err != nil {
		return nil, fmt.Errorf("find organisation: %w", err)
	}
	w := &walk{s: s, v: v, p: p, org: org, trip: tripOf(ctx), language: p.Language}
	if w.language == "" {
		w.language = o.Language
	}
	zone := p.Timezone
	if zone == "" {
		zone = o.Timezone
	}
	if w.zone, err = time.LoadLocation(zone); err != nil {
		w.zone = time.UTC
	}
	return w, s.DB.Tx(ctx, func(tx db.Querier) error {
		return s.Calls.EnterFlow(ctx, tx, org, v.Info().CallID, p.FlowID, p.Version)
	})
}

// enterIVR sets the stage of the call to "ivr". It is called again when the caller returns to the flow.
func (w *walk) enter(ctx context.Context) error { return w.v.Enter(ctx, pbx.Place{Stage: "ivr"}) }

// asksMaskedDigits reports whether a step of the flow collects masked digits. Then all keys of the caller are masked,
// because a caller who knows the flow presses them ahead of time.
func (w *walk) masks() bool {
	for _, s := range w.p.Steps {
		if x, ok := s.Config.(*flow.Collect); ok && x.Mask {
			return true
		}
	}
	return false
}

// run executes the steps until the flow ends.
func (w *walk) run(ctx context.Context) (outcome string) {
	for s := w.p.First(); s != nil; s = w.p.Next(s, outcome) {
		if ctx.Err() != nil {
			return Gone
		}
		if !step(ctx) {
			w.v.Step("flow.failed", map[string]any{"flow_id": w.p.FlowID, "reason": "too many steps"})
			return Failed
		}
		w.problem = ""
		began := w.s.Now()
		outcome = w.do(ctx, s)
		w.told(s, outcome, w.s.Now().Sub(began))
		if outcome == Gone {
			return Gone
		}
		if _, ends := s.Config.(*flow.Hangup); ends {
			return Ended
		}
	}
	return last(outcome)
}

// flowOutcome returns the outcome of a flow whose last step had the given outcome.
func last(outcome string) string {
	switch outcome {
	case Answered, Left:
		return outcome
	case "accepted", "callback":
		return Callback
	}
	return Ended
}

// traceStep writes a step to the call's timeline.
func (w *walk) told(s *flow.Step, outcome string, took time.Duration) {
	switch outcome {
	case Gone:
		outcome = "gone"
	case Ended:
		outcome = "" // a hang-up step has no outcome
	}
	d := map[string]any{"flow_id": w.p.FlowID, "node": s.ID, "type": s.Config.Type(), "outcome": outcome, "ms": int(took.Milliseconds())}
	if w.problem != "" {
		d["problem"] = w.problem
	}
	w.v.Step("flow.step", d)
}

// execute executes a step and returns its outcome.
func (w *walk) do(ctx context.Context, s *flow.Step) (outcome string) {
	switch x := s.Config.(type) {
	case *flow.Play:
		return w.play(ctx, x)
	case *flow.Menu:
		return w.menu(ctx, x)
	case *flow.Collect:
		return w.collect(ctx, x)
	case *flow.Hours:
		return w.hours(x)
	case *flow.Condition:
		return w.condition(ctx, x)
	case *flow.Set:
		return w.set(ctx, x)
	case *flow.HuntGroup:
		return w.hunt(ctx, s.ID, x)
	case *flow.Queue:
		return w.queue(ctx, x)
	case *flow.AIAgent:
		return w.assistant(ctx, s.ID, x)
	case *flow.ContactLookup:
		return w.lookUp(ctx, x)
	}
	return w.act(ctx, s)
}

// executeAction executes the steps with side effects, such as HTTP requests, transfers and messages.
func (w *walk) act(ctx context.Context, s *flow.Step) (outcome string) {
	switch x := s.Config.(type) {
	case *flow.HTTP:
		return w.request(ctx, s.ID, x)
	case *flow.Transfer:
		return w.transfer(ctx, x)
	case *flow.Voicemail:
		return w.voicemail(ctx, x)
	case *flow.Callback:
		return w.callback(ctx, x)
	case *flow.SMS:
		return w.text(ctx, x)
	case *flow.Record:
		return w.record(ctx, x)
	case *flow.Tag:
		return w.tag(ctx, x)
	case *flow.Hangup:
		return w.hangUp(ctx, x)
	}
	w.problem = "unknown type"
	return Failed
}
