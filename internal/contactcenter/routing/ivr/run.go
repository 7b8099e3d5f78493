package ivr

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/contactcenter/routing"
	"soniq/internal/intelligence/voiceagent"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/pbx"
)

// flowRun is one caller's run through a flow. It keeps the program that was published when the caller entered.
type flowRun struct {
	s           *Service
	v           *pbx.ScriptedCall
	program     *flow.Program
	org         string
	flowContext *routing.FlowContext
	zone        *time.Location
	language    string
	problem     string // why the current step failed, if no outcome of the step says it
}

// RunFlow runs the published version of a flow for a caller.
func (s *Service) RunFlow(ctx context.Context, v *pbx.ScriptedCall, id string, l pbx.Handoff) (outcome string) {
	w, err := s.newFlowRun(ctx, v, l.Org, id)
	if ctx.Err() != nil {
		return routing.CallerGone
	}
	if err != nil {
		if !db.IsNone(err) {
			s.cfg.Log.Error("flow not entered", "call", v.Info().CallID, "flow", id, "err", err)
		}
		v.AddEntry("flow.failed", map[string]any{"flow_id": id, "reason": flowFailureReason(err)})
		return routing.Failed
	}
	v.AddEntry("flow.entered", map[string]any{"flow_id": id, "name": w.program.Name, "version": w.program.Version})
	if err := w.enterIVR(ctx); err != nil {
		return routing.CallerGone
	}
	defer w.maskKeys()()
	return w.run(ctx)
}

// maskKeys stops the recording of pressed keys while the caller is in a flow that asks for masked digits. The
// returned function ends that.
func (w *flowRun) maskKeys() func() {
	if !w.asksMaskedDigits() {
		return func() {}
	}
	w.flowContext.MaskDepth++
	w.v.MaskKeys(true)
	return func() {
		if w.flowContext.MaskDepth--; w.flowContext.MaskDepth == 0 {
			w.v.MaskKeys(false)
		}
	}
}

func flowFailureReason(err error) string {
	if db.IsNone(err) {
		return "there is no such flow that is published"
	}
	return "internal error"
}

// newFlowRun reads the program, the language and the time zone for a run, and writes the flow to the call record.
func (s *Service) newFlowRun(ctx context.Context, v *pbx.ScriptedCall, org, id string) (*flowRun, error) {
	p, err := s.cfg.Flows.Program(ctx, org, id)
	if err != nil {
		return nil, err
	}
	o, err := s.cfg.Orgs.Get(ctx, org)
	if err != nil {
		return nil, fmt.Errorf("find organisation: %w", err)
	}
	w := &flowRun{s: s, v: v, program: p, org: org, flowContext: routing.FlowContextOf(ctx), language: p.Language}
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
	return w, s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		return s.cfg.Calls.EnterFlow(ctx, tx, org, v.Info().CallID, p.FlowID, p.Version)
	})
}

// enterIVR sets the stage of the call to "ivr". It is called again when the caller returns to the flow.
func (w *flowRun) enterIVR(ctx context.Context) error {
	return w.v.SetStage(ctx, pbx.Place{Stage: "ivr"})
}

// asksMaskedDigits reports whether a step of the flow collects masked digits. Then all keys of the caller are masked,
// because a caller who knows the flow presses them ahead of time.
func (w *flowRun) asksMaskedDigits() bool {
	for _, s := range w.program.Steps {
		if x, ok := s.Config.(*flow.Collect); ok && x.Mask {
			return true
		}
	}
	return false
}

// run executes the steps until the flow ends.
func (w *flowRun) run(ctx context.Context) (outcome string) {
	for s := w.program.First(); s != nil; s = w.program.Next(s, outcome) {
		if ctx.Err() != nil {
			return routing.CallerGone
		}
		if !routing.CountStep(ctx) {
			w.v.AddEntry("flow.failed", map[string]any{"flow_id": w.program.FlowID, "reason": "too many steps"})
			return routing.Failed
		}
		w.problem = ""
		began := w.s.cfg.Clock.Now()
		outcome = w.executeForCaller(ctx, s)
		w.traceStep(s, outcome, w.s.cfg.Clock.Now().Sub(began))
		if outcome == routing.CallerGone {
			return routing.CallerGone
		}
		if _, ends := s.Config.(*flow.Hangup); ends {
			return routing.Ended
		}
		outcome = followed(s, outcome)
	}
	if flowOutcome(outcome) == routing.Ended {
		w.endCall(ctx, "")
	}
	return flowOutcome(outcome)
}

// followed returns the outcome that decides which step follows. A voice agent whose handoff was answered has handed over.
func followed(s *flow.Step, outcome string) string {
	if _, agent := s.Config.(*flow.AIAgent); agent && outcome == routing.Answered && s.Next[voiceagent.Handoff] != "" {
		return voiceagent.Handoff
	}
	return outcome
}

// executeForCaller executes a step and returns its outcome. A step that needs the caller waits until the caller has come back from a
// conversation with a person. Such steps behind an answer make the caller come back.
func (w *flowRun) executeForCaller(ctx context.Context, s *flow.Step) (outcome string) {
	if !flow.NeedsCaller(s.Config) {
		return w.execute(ctx, s)
	}
	if w.v.Connected() && (w.v.AwaitReturn(ctx) != nil || w.enterIVR(ctx) != nil) {
		return routing.CallerGone
	}
	if w.program.ReturnsAfter(s, followed(s, routing.Answered)) {
		w.flowContext.ReturnDepth++
		defer func() { w.flowContext.ReturnDepth-- }()
	}
	if returns := w.flowContext.ReturnDepth > 0; returns != w.flowContext.Returns {
		w.flowContext.Returns = returns
		w.v.ReturnAfterAnswer(returns)
	}
	return w.execute(ctx, s)
}

// flowOutcome returns the outcome of a flow whose last step had the given outcome.
func flowOutcome(outcome string) string {
	switch outcome {
	case routing.Answered, routing.LeftMessage:
		return outcome
	case "accepted", "callback":
		return routing.Callback
	}
	return routing.Ended
}

// traceStep writes a step to the call's timeline.
func (w *flowRun) traceStep(s *flow.Step, outcome string, took time.Duration) {
	switch outcome {
	case routing.CallerGone:
		outcome = "gone"
	case routing.Ended:
		outcome = "" // a hang-up step has no outcome
	}
	d := map[string]any{"flow_id": w.program.FlowID, "node": s.ID, "type": s.Config.Type(), "outcome": outcome,
		"ms": int(took.Milliseconds())}
	if w.problem != "" {
		d["problem"] = w.problem
	}
	w.v.AddEntry("flow.step", d)
}

// execute executes a step and returns its outcome.
func (w *flowRun) execute(ctx context.Context, s *flow.Step) (outcome string) {
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
		return w.huntGroup(ctx, s.ID, x)
	case *flow.Queue:
		return w.queue(ctx, x)
	case *flow.AIAgent:
		return w.voiceAgent(ctx, s.ID, x)
	case *flow.ContactLookup:
		return w.lookUp(ctx, x)
	}
	return w.executeAction(ctx, s)
}

// executeAction executes the steps with side effects, such as HTTP requests, transfers and messages.
func (w *flowRun) executeAction(ctx context.Context, s *flow.Step) (outcome string) {
	switch x := s.Config.(type) {
	case *flow.HTTP:
		return w.httpRequest(ctx, s.ID, x)
	case *flow.Transfer:
		return w.transfer(ctx, x)
	case *flow.Voicemail:
		return w.voicemail(ctx, x)
	case *flow.Callback:
		return w.callback(ctx, x)
	case *flow.SMS:
		return w.sendSMS(ctx, x)
	case *flow.Record:
		return w.record(ctx, x)
	case *flow.Tag:
		return w.tag(ctx, x)
	case *flow.Hangup:
		return w.hangUp(ctx, x)
	}
	w.problem = "unknown type"
	return routing.Failed
}
