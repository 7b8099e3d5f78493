package trunk

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"soniq/internal/telephony/number"
)

// OutboundGate is the admission control for calls to the public network. Phones, transfers, forwards, callbacks and
// API calls all use it, so that the limits apply to their sum. It is safe for concurrent use; a node has one.
type OutboundGate struct {
	trunks        *Service
	limits        *Limiter
	log           *slog.Logger
	usage         earlierUsage
	refusalCounts [len(countedReasons)]atomic.Int64
	throttle      logThrottle
}

// NewOutboundGate returns the gate of a node.
func NewOutboundGate(trunks *Service, limits *Limiter, log *slog.Logger) *OutboundGate {
	return &OutboundGate{trunks: trunks, limits: limits, log: log,
		usage: earlierUsage{started: trunks.now(), loadLocks: map[string]*sync.Mutex{}}, throttle: logThrottle{now: trunks.now,
			last: map[string]throttleState{}}}
}

// CallAttempt describes an outbound call to be admitted.
type CallAttempt struct {
	Org           string
	Dialled       string
	Program       bool // not dialled by a person: an API call, an AI agent, a forward
	UserSuspended bool // the user of the call is suspended
}

// Admission is an admitted call: its plan and its place under the limits. End must be called when the call ends, or
// if it is not made after all.
type Admission struct {
	Plan
	End func()
}

// Admit admits or refuses a call. Emergency calls are checked first and pass every limit. Then come the number, the
// limits of the organisation, and one call per second to the same number. If the call is refused, the error is a
// *Refusal, which has been counted and logged.
func (g *OutboundGate) Admit(ctx context.Context, a CallAttempt) (Admission, error) {
	p, err := g.admit(ctx, a)
	var no *Refusal
	if errors.As(err, &no) {
		g.recordRefusal(a, no)
	}
	return p, err
}

// callsPerSecondPerDestination limits the calls of one organisation to one number.
const callsPerSecondPerDestination = 1

func (g *OutboundGate) admit(ctx context.Context, a CallAttempt) (Admission, error) {
	plan, err := g.permit(ctx, a)
	switch {
	case err != nil:
		return Admission{}, err
	case plan.Emergency:
		return Admission{plan, g.limits.BeginUnlimited(a.Org, Limit{})}, nil
	}
	return g.admitWithinLimits(ctx, a, plan)
}

// permit returns the plan of a call, or the refusal by anything except the limits.
func (g *OutboundGate) permit(ctx context.Context, a CallAttempt) (Plan, error) {
	plan, err := g.trunks.Plan(ctx, a.Org, a.Dialled)
	var no *Refusal
	_ = errors.As(err, &no)
	if a.Program && (plan.Emergency || no != nil && no.Reason == EmergencyUnavailable) {
		return Plan{}, &Refusal{Reason: EmergencyNotForPrograms, Dialled: a.Dialled}
	}
	if a.UserSuspended && !plan.Emergency && (err == nil || no != nil && no.Reason != EmergencyUnavailable) {
		return plan, &Refusal{UserSuspended, a.Dialled, plan.Country, plan.Type}
	}
	if err != nil || plan.Emergency {
		return plan, err
	}
	halted, err := g.trunks.OutboundKillSwitch(ctx)
	if err == nil && halted {
		err = &Refusal{OutboundStopped, a.Dialled, plan.Country, plan.Type}
	}
	return plan, err
}

// Preview returns the plan of a call as Admit would at this moment. It counts nothing. If the call would be refused, the
// error is a *Refusal, and the plan is what was known before.
func (g *OutboundGate) Preview(ctx context.Context, a CallAttempt) (Plan, error) {
	plan, err := g.permit(ctx, a)
	if err != nil || plan.Emergency {
		return plan, err
	}
	claims, err := g.claims(ctx, a, plan)
	if err == nil {
		err = limitRefusal(a, plan, g.limits.check, claims)
	}
	return plan, err
}

// AdmitEmergency admits an emergency call whose plan was made without the database.
func (g *OutboundGate) AdmitEmergency(org string, plan Plan) (Admission, error) {
	if len(plan.Routes) == 0 {
		no := &Refusal{EmergencyUnavailable, plan.Number, plan.Country, plan.Type}
		g.recordRefusal(CallAttempt{Org: org, Dialled: plan.Number}, no)
		return Admission{}, no
	}
	return Admission{plan, g.limits.BeginUnlimited(org, Limit{})}, nil
}

func (g *OutboundGate) admitWithinLimits(ctx context.Context, a CallAttempt, plan Plan) (Admission, error) {
	claims, err := g.claims(ctx, a, plan)
	if err != nil {
		return Admission{}, err
	}
	var end func()
	begin := func(claims ...Claim) (at int, r Reason) {
		end, at, r = g.limits.BeginAll(claims...)
		return at, r
	}
	if err := limitRefusal(a, plan, begin, claims); err != nil {
		return Admission{}, err
	}
	return Admission{plan, end}, nil
}

// claims returns what a call takes of the limits: a place of its organisation, and one at its destination.
func (g *OutboundGate) claims(ctx context.Context, a CallAttempt, plan Plan) ([]Claim, error) {
	if plan.Limit.MinutesPerDay > 0 {
		if err := g.loadUsage(ctx, a.Org, plan.Limit); err != nil {
			return nil, err
		}
	}
	there := Claim{Key: a.Org + ">" + number.Identity(plan.Number), Limit: Limit{PerSecond: callsPerSecondPerDestination}}
	return []Claim{{Key: a.Org, Limit: plan.Limit}, there}, nil
}

// limitRefusal returns the refusal of a call by the limits, or nil. The function take counts the claims, or only checks them.
func limitRefusal(a CallAttempt, plan Plan, take func(...Claim) (int, Reason), claims []Claim) error {
	at, reason := take(claims...)
	switch {
	case reason == Allowed:
		return nil
	case at == 1:
		reason = DestinationRateExceeded
	}
	return &Refusal{reason, a.Dialled, plan.Country, plan.Type}
}

// AcquireChannel takes a channel of a trunk. An emergency call always gets one: if none is free, the newest call is
// ended by its preempt function. For other calls ok is false if no channel is free or the calls per second are
// exceeded. It is also false if outbound calls were stopped since the call was admitted. preempt may be nil; the call then keeps its
// channel.
func (g *OutboundGate) AcquireChannel(t Trunk, emergency bool, cut func()) (release func(), ok bool) {
	if emergency {
		return g.limits.BeginUnlimited(t.ID, t.ChannelLimit()), true
	}
	release, _, reason := g.limits.BeginAll(Claim{Key: t.ID, Limit: t.ChannelLimit(), Preempt: cut})
	if reason != Allowed {
		return release, false
	}
	if g.isStopped() { // after the call can be cut, so that StopAll or this check ends it
		release()
		return func() {}, false
	}
	return release, true
}

// isStopped reports whether outbound calls were stopped since the call was admitted. Without an answer of the database
// the admission stands.
func (g *OutboundGate) isStopped() bool {
	ctx, cancel := context.WithTimeout(context.Background(), killSwitchTimeout)
	defer cancel()
	stopped, err := g.trunks.OutboundKillSwitch(ctx)
	return err == nil && stopped
}

// killSwitchTimeout limits the check of the kill switch before an INVITE.
const killSwitchTimeout = time.Second

// Resume counts a call that a restarted node continues, for its organisation and its trunk.
func (g *OutboundGate) Resume(org, trunkID string, began time.Time, cut func()) (release func()) {
	one, other := g.limits.Resume(org, began, nil), g.limits.Resume(trunkID, began, cut)
	return func() { one(); other() }
}

// StopAll ends every outbound call in progress except emergency calls, and returns their number.
func (g *OutboundGate) StopAll() int { return g.limits.PreemptAll() }

func (g *OutboundGate) recordRefusal(a CallAttempt, no *Refusal) {
	for i, r := range countedReasons {
		if r == no.Reason {
			g.refusalCounts[i].Add(1)
		}
	}
	muted, tell := g.throttle.allow(a.Org + string(no.Reason))
	if tell {
		g.log.Warn("outbound call refused", "org", a.Org, "reason", string(no.Reason), "dialled", truncateDialled(a.Dialled), "country",
			no.Country, "type", no.Type, "more_of_them", muted)
	}
}

// RefusalCounts returns the refusals since the start of the process, by reason. Reasons without a refusal have 0.
func (g *OutboundGate) RefusalCounts() map[Reason]int64 {
	all := make(map[Reason]int64, len(countedReasons))
	for i, r := range countedReasons {
		all[r] = g.refusalCounts[i].Load()
	}
	return all
}

func truncateDialled(s string) string { return s[:min(len(s), 40)] }

// logThrottle limits the log lines about refusals to one per key and interval.
type logThrottle struct {
	now  func() time.Time
	mu   sync.Mutex // guards last
	last map[string]throttleState
}

type throttleState struct {
	writtenAt  time.Time
	suppressed int
}

const (
	throttleInterval = 10 * time.Second
	maxThrottleKeys  = 10_000
)

// allow reports whether a line about the key may be written, and how many were suppressed since the last one.
func (q *logThrottle) allow(key string) (muted int, yes bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t, now := q.last[key], q.now()
	if now.Sub(t.writtenAt) < throttleInterval {
		t.suppressed++
		q.last[key] = t
		return 0, false
	}
	if len(q.last) >= maxThrottleKeys {
		clear(q.last)
	}
	q.last[key] = throttleState{writtenAt: now}
	return t.suppressed, true
}
