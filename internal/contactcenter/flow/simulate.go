package flow

import (
	"context"
	"fmt"
	"slices"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/number"
)

// SimulateIn is the input of Simulate.
type SimulateIn struct {
	OneIn
	Body Rehearsal
}

// Rehearsal describes a simulated call.
type Rehearsal struct {
	From   string         `json:"from" doc:"Who calls: a number, or anonymous" example:"+442079460018"`
	At     db.Time        `json:"at,omitzero" doc:"When; now unless given"`
	Inputs []string       `json:"inputs,omitempty" maxItems:"200" doc:"In order: what is pressed in menus, \"\" for nothing; or what comes of a step, such as timeout of a queue"`
	CRM    map[string]any `json:"crm,omitempty" doc:"What is known of the caller; unless given nothing is"`
}

// Trace is the path of a simulated call.
type Trace struct {
	Path    []Passed `json:"path" nullable:"false"`
	Outcome string   `json:"outcome" doc:"How it ended: type and outcome of the last step, such as queue.answered; or too_many_steps"`
}

// Passed is one step of a simulated call.
type Passed struct {
	NodeID    string `json:"node_id"`
	Output    string `json:"output" doc:"The outcome; empty for hangup"`
	ElapsedMS int    `json:"elapsed_ms" doc:"About when the step ends, from the beginning of the call"`
}

// maxSimulatedSteps limits the steps of a simulated call.
const maxSimulatedSteps = 200

// Simulate runs the newest version of a flow without side effects: it calls, sends and stores nothing. A step that
// depends on others takes the next input as its outcome if it has such an outcome. Otherwise the step succeeds.
func (s *Service) Simulate(ctx context.Context, in *SimulateIn) (*op.Out[Trace], error) {
	q := s.cfg.DB.Read(ctx)
	f, err := s.findFlow(ctx, q, in.ID, op.Match{})
	if err != nil {
		return nil, err
	}
	o, err := s.cfg.Orgs.Get(ctx, f.OrgID)
	if err != nil {
		return nil, fmt.Errorf("find organisation: %w", err)
	}
	from, ok := number.Parse(in.Body.From, o.Country)
	if in.Body.From == "anonymous" {
		from, ok = in.Body.From, true
	}
	if !ok {
		return nil, op.Invalid(op.Field("from", "invalid_e164", "not a valid number for "+o.Country))
	}
	g, err := s.graphOf(ctx, q, f, "")
	if err != nil {
		return nil, err
	}
	p, _, err := compile(ctx, access.Org(ctx), acceptAll, g)
	if err != nil {
		return nil, err
	}
	zone, err := s.zone(ctx, f.OrgID, g.Timezone)
	if err != nil {
		return nil, err
	}
	at := in.Body.At.Time
	if in.Body.At.IsZero() {
		at = s.cfg.Clock.Now()
	}
	r := &simulation{program: p, zone: zone, at: at, inputs: in.Body.Inputs, contact: in.Body.CRM, scope: Scope{Variables: map[string]any{},
		Caller: Caller{Number: from, Anonymous: from == "anonymous"}, Contact: map[string]any{}, Memory: map[string]any{},
		Budget: new(Budget)}}
	return op.OK(r.run())
}

// zone returns the time zone of a flow.
func (s *Service) zone(ctx context.Context, org, name string) (*time.Location, error) {
	if name == "" {
		return s.cfg.Orgs.Zone(ctx, org)
	}
	return time.LoadLocation(name)
}

// simulation is the state of a simulated call.
type simulation struct {
	program *Program
	zone    *time.Location
	at      time.Time
	took    time.Duration
	inputs  []string
	contact map[string]any
	scope   Scope
}

func (r *simulation) run() Trace {
	t := Trace{Path: []Passed{}}
	for s := r.program.First(); s != nil; {
		if len(t.Path) >= maxSimulatedSteps {
			t.Outcome = "too_many_steps"
			return t
		}
		r.scope.Time = MomentOf(r.at.Add(r.took).In(r.zone))
		outcome := r.step(s.Config)
		t.Path = append(t.Path, Passed{s.ID, outcome, int(r.took.Milliseconds())})
		t.Outcome = s.Config.Type()
		if outcome != "" {
			t.Outcome += "." + outcome
		}
		s = r.program.Next(s, outcome)
	}
	return t
}

// input returns the next input. ok is false if none is left.
func (r *simulation) input() (text string, ok bool) {
	if len(r.inputs) == 0 {
		return "", false
	}
	text, r.inputs = r.inputs[0], r.inputs[1:]
	return text, true
}

// outcomeOr returns the next input if it is an outcome of the action, else usual.
func (r *simulation) outcomeOr(c Action, usual string) string {
	if len(r.inputs) > 0 && slices.ContainsFunc(c.Outcomes(), func(o Outcome) bool { return o.Name == r.inputs[0] }) {
		outcome, _ := r.input()
		return outcome
	}
	return usual
}

// promptDuration returns the approximate duration of a prompt.
func promptDuration(p Prompt) time.Duration {
	if p.Text == "" {
		return 3 * time.Second
	}
	return time.Duration(len([]rune(p.Text))) * 65 * time.Millisecond
}

// step simulates a step and returns its outcome.
func (r *simulation) step(c Action) string {
	switch x := c.(type) {
	case *Play:
		r.took += promptDuration(x.Prompt)
		return "done"
	case *Menu:
		return r.menu(x)
	case *Collect:
		return r.collect(x)
	case *Hours:
		return x.Outcome(r.at.Add(r.took), r.zone)
	case *Condition:
		truth, _ := x.IsTrue(r.scope)
		return map[bool]string{true: "true", false: "false"}[truth]
	case *Set:
		for name, v := range x.Values(r.scope) {
			r.scope.Variables[name] = v
		}
		return "done"
	case *ContactLookup:
		r.took += time.Duration(x.TimeoutMS) * time.Millisecond
		if r.contact == nil {
			return r.outcomeOr(c, "miss")
		}
		r.scope.Contact, r.scope.Variables[x.Variable] = r.contact, r.contact
		return r.outcomeOr(c, "hit")
	case *Hangup:
		return ""
	case *Record, *Tag:
		return "done"
	}
	return r.outcomeOr(c, defaultOutcomes[c.Type()])
}

// defaultOutcomes are the outcomes of successful steps that depend on others.
var defaultOutcomes = map[string]string{"hunt_group": "answered", "queue": "answered", "transfer": "answered", "ai_agent": "completed",
	"http": "success", "voicemail": "left", "callback": "accepted", "sms": "sent"}

func (r *simulation) menu(m *Menu) string {
	for try := 0; ; try++ {
		r.took += promptDuration(m.Prompt)
		pressed, ok := r.input()
		_, known := m.Digits[pressed]
		switch {
		case known:
			r.took += time.Second
			return pressed
		case !ok || pressed == "" || pressed == "timeout":
			r.took += time.Duration(m.Timeout) * time.Second
			if !ok || try >= m.Retries {
				return "timeout"
			}
		case try >= m.Retries:
			return "invalid"
		}
	}
}

func (r *simulation) collect(x *Collect) string {
	r.took += promptDuration(x.Prompt)
	digits, ok := r.input()
	if n := len(digits); !ok || n < x.Min || n > x.Max {
		r.took += time.Duration(x.Timeout) * time.Second
		return "timeout"
	}
	r.scope.Variables[x.Variable] = digits
	r.took += time.Duration(len(digits)) * 400 * time.Millisecond
	return "done"
}

// Outcome returns open, closed or holiday for a time. zone is the time zone of the flow; the zone of the hours takes
// precedence.
func (h *Hours) Outcome(now time.Time, zone *time.Location) string {
	if h.Hours.Timezone != "" {
		if own, err := time.LoadLocation(h.Hours.Timezone); err == nil {
			zone = own
		}
	}
	day := now.In(zone)
	if slices.Contains(h.Holidays, day.Format(time.DateOnly)) || slices.Contains(h.Holidays, day.Format("01-02")) {
		return "holiday"
	}
	if open, _ := h.Hours.At(now, zone); open {
		return "open"
	}
	return "closed"
}
