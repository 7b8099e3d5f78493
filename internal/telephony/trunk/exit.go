package trunk

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// OutboundGate is the admission control for calls to the public network. Phones, transfers, forwards, callbacks and
// API calls all use it, so that the limits apply to their sum. It is safe for concurrent use; a node has one.
type Gate struct {
	trunks *Service
	limits *Limiter
	log    *slog.Logger
	used   usage
	counts [len(order)]atomic.Int64
	quiet  quiet
}

// NewOutboundGate returns the gate of a node.
func NewGate(trunks *Service, limits *Limiter, log *slog.Logger) *Gate {
	return &Gate{trunks: trunks, limits: limits, log: log,
		used: usage{started: trunks.now(), known: map[string]*sync.Mutex{}}, quiet: quiet{now: trunks.now, last: map[string]told{}}}
}

// CallAttempt describes an outbound call to be admitted.
type Attempt struct {
	Org     string
	Dialled string
	Program bool // not dialled by a person: an API call, an AI agent, a forward
	Barred  bool // the user of the call is suspended
}

// Admission is an admitted call: its plan and its place under the limits. End must be called when the call ends, or
// if it is not made after all.
type Pass struct {
	Plan
	End func()
}

// Admit admits or refuses a call. Emergency calls are checked first and pass every limit. Then come the number, the
// limits of the organisation, and one call per second to the same number. If the call is refused, the error is a
// *Refusal, which has been counted and logged.
func (g *Gate) Open(ctx context.Context, a Attempt) (Pass, error) {
	p, err := g.open(ctx, a)
	var no *Refusal
	if errors.As(err, &no) {
		g.refused(a, no)
	}
	return p, err
}

// callsPerSecondPerDestination limits the calls of one organisation to one number.
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

// AcquireChannel takes a channel of a trunk. An emergency call always gets one: if none is free, the newest call is
// ended by its preempt function. For other calls ok is false if no channel is free or the calls per second are
// exceeded. preempt may be nil; the call then keeps its channel.
func (g *Gate) Channel(t Trunk, emergency bool, cut func()) (release func(), ok bool) {
	if emergency {
		return g.limits.Force(t.ID, t.LimitOf()), true
	}
	release, _, reason := g.limits.Take(Claim{Key: t.ID, Limit: t.LimitOf(), Cut: cut})
	return release, reason == Allowed
}

// Resume counts a call that a restarted node continues, for its organisation and its trunk.
func (g *Gate) Resume(org, trunkID string, began time.Time, cut func()) (release func()) {
	one, other := g.limits.Resume(org, began, nil), g.limits.Resume(trunkID, began, cut)
	return func() { one(); other() }
}

// StopAll ends every outbound call in progress except emergency calls, and returns their number.
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

// RefusalCounts returns the refusals since the start of the process, by reason. Reasons without a refusal have 0.
func (g *Gate) Refused() map[Reason]int64 {
	all := make(map[Reason]int64, len(order))
	for i, r := range order {
		all[r] = g.counts[i].Load()
	}
	return all
}

func shortened(s string) string { return s[:min(len(s), 40)] }

// logThrottle limits the log lines about refusals to one per key and interval.
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

// allow reports whether a line about the key may be written, and how many were suppressed since the last one.
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
