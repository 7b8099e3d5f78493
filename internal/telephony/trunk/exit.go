package trunk

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// A Gate is the one way to the public network: whatever wants to go out, a phone, a transfer, a forward, a callback or a
// program, asks here, so that the limits hold over all of them together.
type Gate struct {
	trunks *Service
	limits *Limiter
	log    *slog.Logger
	used   usage
	counts [len(order)]atomic.Int64
	quiet  quiet
}

// NewGate makes the gate of a node.
func NewGate(trunks *Service, limits *Limiter, log *slog.Logger) *Gate {
	return &Gate{trunks: trunks, limits: limits, log: log,
		used: usage{started: trunks.now(), known: map[string]*sync.Mutex{}}, quiet: quiet{now: trunks.now, last: map[string]told{}}}
}

// An Attempt is a call that wants to go out.
type Attempt struct {
	Org     string
	Dialled string
	Program bool // no person dials it: an API call, an AI agent, a forward
	Barred  bool // of a user who is suspended
}

// A Pass is the leave to go out. End must be called when the call ends, or is not made after all.
type Pass struct {
	Plan
	End func()
}

// Open decides over an attempt: emergency calls before every limit; then the number; then the organisation's limits and
// the one call per second to the same number. A call that must not go out is a *Refusal, which has been counted and
// logged.
func (g *Gate) Open(ctx context.Context, a Attempt) (Pass, error) {
	p, err := g.open(ctx, a)
	var no *Refusal
	if errors.As(err, &no) {
		g.refused(a, no)
	}
	return p, err
}

// perDestination is how many calls per second one number may get from one organisation.
const perDestination = 1

func (g *Gate) open(ctx context.Context, a Attempt) (Pass, error) {
	plan, err := g.trunks.Plan(ctx, a.Org, a.Dialled)
	var no *Refusal
	_ = errors.As(err, &no)
	if a.Program && (plan.Emergency || no != nil && no.Reason == EmergencyNotReached) {
		return Pass{}, &Refusal{Reason: EmergencyByProgram, Dialled: a.Dialled}
	}
	if a.Barred && !plan.Emergency && (err == nil || no != nil && no.Reason != EmergencyNotReached) {
		return Pass{}, &Refusal{UserSuspended, a.Dialled, plan.Country, plan.Type}
	}
	if err != nil {
		return Pass{}, err
	}
	if plan.Emergency {
		return Pass{plan, g.limits.Force(a.Org, Limit{})}, nil
	}
	halted, err := g.trunks.Halted(ctx)
	if err != nil {
		return Pass{}, err
	}
	if halted {
		return Pass{}, &Refusal{OutboundHalted, a.Dialled, plan.Country, plan.Type}
	}
	return g.take(ctx, a, plan)
}

func (g *Gate) take(ctx context.Context, a Attempt, plan Plan) (Pass, error) {
	if plan.Limit.MinutesPerDay > 0 {
		if err := g.recall(ctx, a.Org, plan.Limit); err != nil {
			return Pass{}, err
		}
	}
	there := Claim{Key: a.Org + ">" + plan.Number, Limit: Limit{PerSecond: perDestination}}
	end, at, reason := g.limits.Take(Claim{Key: a.Org, Limit: plan.Limit}, there)
	if at == 1 {
		reason = TooFastThere
	}
	if reason != Allowed {
		return Pass{}, &Refusal{reason, a.Dialled, plan.Country, plan.Type}
	}
	return Pass{plan, end}, nil
}

// Channel takes a channel of a trunk. An emergency call always gets one: where none is free the call that began last
// loses its own, by its cut. ok is false where none is free, or too many calls begin.
func (g *Gate) Channel(t Trunk, emergency bool, cut func()) (release func(), ok bool) {
	if emergency {
		return g.limits.Force(t.ID, t.LimitOf()), true
	}
	release, _, reason := g.limits.Take(Claim{Key: t.ID, Limit: t.LimitOf(), Cut: cut})
	return release, reason == Allowed
}

// Resume counts a call that a restarted node carries on, in its organisation and on its trunk.
func (g *Gate) Resume(org, trunkID string, began time.Time, cut func()) (release func()) {
	one, other := g.limits.Resume(org, began, nil), g.limits.Resume(trunkID, began, cut)
	return func() { one(); other() }
}

// Stop ends every outbound call in progress that is no emergency call, and returns how many.
func (g *Gate) Stop() int { return g.limits.CutAll() }

func (g *Gate) refused(a Attempt, no *Refusal) {
	for i, r := range order {
		if r == no.Reason {
			g.counts[i].Add(1)
		}
	}
	muted, tell := g.quiet.tell(a.Org + string(no.Reason))
	if tell {
		g.log.Warn("outbound call refused", "org", a.Org, "reason", string(no.Reason), "dialled", shortened(a.Dialled), "country", no.Country,
			"type", no.Type, "more_of_them", muted)
	}
}

// Refused counts refusals since start, by reason; every reason is there.
func (g *Gate) Refused() map[Reason]int64 {
	all := make(map[Reason]int64, len(order))
	for i, r := range order {
		all[r] = g.counts[i].Load()
	}
	return all
}

func shortened(s string) string { return s[:min(len(s), 40)] }

// quiet keeps a flood of refusals from becoming a flood of log lines.
type quiet struct {
	now  func() time.Time
	mu   sync.Mutex // guards last
	last map[string]told
}

type told struct {
	at    time.Time
	muted int
}

const (
	quietFor  = 10 * time.Second
	quietKeys = 10_000
)

// tell reports whether to write a line about the key, and how many were left out since the last one.
func (q *quiet) tell(key string) (muted int, yes bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t, now := q.last[key], q.now()
	if now.Sub(t.at) < quietFor {
		t.muted++
		q.last[key] = t
		return 0, false
	}
	if len(q.last) >= quietKeys {
		clear(q.last)
	}
	q.last[key] = told{at: now}
	return t.muted, true
}
