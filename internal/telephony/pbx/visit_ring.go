package pbx

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"soniq/internal/protocol/media"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
)

// Ringing of users and numbers for a scripted call.

// RingOptions holds the options of Ring.
type Ringing struct {
	Timeout  time.Duration // 0: 25 s; per device with InOrder
	DeviceID string        // only this device of the user; empty: all
	InOrder  bool          // one device after the other
	Show     string        // prefix of the caller's display name
	Music    bool          // the caller hears the loop instead of ringback
	Whisper  *media.Clip   // played to the answering party before it is connected
	// BeforeRing is called last before any phone rings; if it returns false, no phone rings. HasPendingRelease is
	// true for the user from before this call until the attempt ends. A process that cancels the attempt meanwhile
	// can therefore see that the user may still ring. nil: always ring.
	Open func(ctx context.Context) bool
	// Claim is called when a party has answered, before it hears anything. An error disconnects that party.
	Claim     func(ctx context.Context) error
	Record    *bool  // record the conversation, overriding the organisation's setting; nil: no override
	Deflected string // user on whose behalf an external number is called
}

// Result is the result of an Attempt.
type Result struct {
	// Status is answered, no_answer, busy, rejected, unreachable, failed, canceled, or lost. It is lost if the
	// answering party hung up before it was connected.
	What             string
	UserID, DeviceID string
	Number           string
	SIPStatus        int
	Rang             time.Duration
	Refusal          *Refusal // reason if no phone could be rung; otherwise nil
}

// Attempt is one ring of a destination for a caller.
type Attempt struct {
	v     *Visit
	o     Ringing
	to    reach
	next  int // index of the next device with InOrder
	began time.Time
	hunt  *hunt
	leg   *leg // the answering leg
	done  chan Result
	once  sync.Once
	over  chan time.Duration
	free  func() // removes the user from the planned releases; nil without a user
}

// Done returns the channel with the single result.
func (a *Attempt) Done() <-chan Result { return a.done }

// TalkTime returns a channel that, after answered, receives the duration of the conversation when the answering party
// has left the call.
func (a *Attempt) Over() <-chan time.Duration { return a.over }

// Cancel cancels the attempt if no party has answered yet.
func (a *Attempt) Cancel() {
	_ = a.v.do(a.v.ctx, func(ctx context.Context) error { a.v.c.giveUpAttempt(a); return nil })
}

// defaultRinging is the ring time without a timeout.
const defaultRinging = 25 * time.Second

// Ring rings a user, a number or an address for the caller: user:usr_…, ext:, sip: or a number. Several attempts
// may run at once. The first answer that is claimed is connected, and the other attempts are canceled. It returns at
// once.
func (v *Visit) Ring(ctx context.Context, to string, o Ringing) (*Attempt, error) {
	a := &Attempt{v: v, o: o, done: make(chan Result, 1), over: make(chan time.Duration, 1), began: v.c.sw.Now()}
	r, refusal, err := v.find(ctx, to, o)
	if err != nil {
		return nil, err
	}
	if refusal != nil {
		r.close()
		v.c.step("not_rung", nil, detail{"to": to, "reason": refusal.Reason, "phrase": refusal.Phrase})
		what := "failed"
		if refusal.Reason == "no_answer" {
			what = "unreachable"
		}
		a.tell(Result{What: what, SIPStatus: refusal.Status, Refusal: refusal})
		return a, nil
	}
	a.to = r
	v.mean(a)
	if o.Open != nil && !o.Open(ctx) {
		r.close()
		a.tell(Result{What: "canceled"})
		return a, nil
	}
	err = v.do(ctx, func(ctx context.Context) error { v.c.try(ctx, a); return nil })
	if err != nil {
		r.close()
		a.release()
	}
	return a, err
}

// markPlanned records that the user of an attempt is about to be rung, until the attempt or the scripted call ends.
// Ringing phones are recorded by themselves.
func (v *Visit) mean(a *Attempt) {
	if a.to.user == nil {
		return
	}
	done := v.c.sw.parting.about(a.to.user.UserID)
	forget := context.AfterFunc(v.ctx, done)
	a.free = func() { forget(); done() }
}

func (a *Attempt) release() {
	if a.free != nil {
		a.free()
	}
}

// resolve returns the phones of a user, or the outbound route.
func (v *Visit) find(ctx context.Context, to string, o Ringing) (reach, *Refusal, error) {
	c := v.c
	from := c.caller
	from.Org, from.Program, from.ShowNumber = v.info.Org, true, ""
	if o.Deflected != "" {
		d, ok, err := c.sw.Directory.User(ctx, v.info.Org, o.Deflected)
		if err != nil {
			return reach{}, nil, err
		}
		if ok {
			from = callerOf(d, "")
			from.Org, from.Program = v.info.Org, true
		}
	}
	return c.sw.people(ctx, from, to, o.DeviceID)
}

// startAttempt starts to ring.
func (c *liveCall) try(ctx context.Context, a *Attempt) {
	v := a.v
	v.attempts = append(v.attempts, a)
	if a.o.InOrder { // device ids are in order of creation
		slices.SortStableFunc(a.to.phones, func(x, y Phone) int { return strings.Compare(x.DeviceID, y.DeviceID) })
	}
	c.wire()
	c.ringNext(ctx, a)
}

// ringNext rings the destination, or its next device with InOrder.
func (c *liveCall) ringNext(ctx context.Context, a *Attempt) {
	to := a.to
	if a.o.InOrder && to.exit == nil {
		to.phones = to.phones[a.next : a.next+1]
		a.next++
	}
	h := c.newHunt("agent", to, a.v.leg)
	h.header, h.unshown, h.by = c.headers, a.v.unshown, a.v.by
	if to.user == nil { // these headers are for our phones only
		h.role, h.header = "callee", nil
	}
	if a.o.Show != "" {
		h.from.Display = a.o.Show + ": " + firstText(h.from.Display, h.from.URI.User)
	}
	if in := a.v.leg.in; in != nil {
		h.maxForwards, h.diversion, h.passports = max(in.MaxForwards-1, 1), in.Diversion, a.v.leg.passports()
	}
	if a.o.Deflected != "" && to.exit != nil {
		h.diversion, h.history = append([]sip.Address{{URI: sip.URI{User: c.divertedFrom(to.exit)}}}, h.diversion...), true
	}
	h.onRing = func(l *leg, e sip.Provisional) { c.attemptRings(a, l, e) }
	h.onAnswer = func(ctx context.Context, l *leg, answer media.Description) { c.attemptAnswered(ctx, a, l, answer) }
	h.onFail = func(ctx context.Context, e sip.Failed) { c.attemptFailed(ctx, a, e) }
	a.hunt = h
	limit := a.o.Timeout
	if limit <= 0 {
		limit = defaultRinging
	}
	h.start(ctx, limit)
}

// divertedFrom returns the number that diverts a call to an external number: the dialled one for inbound calls,
// otherwise the user's.
func (c *liveCall) divertedFrom(e *Exit) string {
	if c.new.Direction == call.Inbound || e.CallerID == "" {
		return c.new.To
	}
	return e.CallerID
}

func firstText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// attemptRings sends 180 to a caller who was never answered.
func (c *liveCall) attemptRings(a *Attempt, l *leg, _ sip.Provisional) {
	c.nowRinging(l)
	if caller := a.v.leg; caller.in != nil && !caller.up() && !caller.over {
		caller.in.Ring(180, nil)
	}
}

// attemptFailed rings the next device, or finishes the attempt.
func (c *liveCall) attemptFailed(ctx context.Context, a *Attempt, e sip.Failed) {
	if a.o.InOrder && a.to.exit == nil && a.next < len(a.to.phones) {
		c.ringNext(ctx, a)
		return
	}
	c.attemptOver(a, Result{What: inVain(e), SIPStatus: e.Status})
	if !c.done {
		c.wire()
	}
}

// cancelAttempt cancels an attempt.
func (c *liveCall) giveUpAttempt(a *Attempt) {
	if a.hunt != nil {
		a.hunt.stop()
	}
	if a.leg != nil {
		c.hangUp(a.leg, sip.Reason{Q850: normalClearing})
	}
	c.attemptOver(a, Result{What: "canceled"})
	c.wire()
}

// finishAttempt removes an attempt from the scripted call and delivers its result.
func (c *liveCall) attemptOver(a *Attempt, r Result) {
	a.v.attempts = without(a.v.attempts, a)
	a.hunt = nil
	if a.to.user != nil {
		r.UserID, r.Number = a.to.user.UserID, a.to.user.Extension
	} else if a.to.exit != nil {
		r.Number = a.to.exit.Number
	}
	if a.leg != nil {
		r.DeviceID = a.leg.caller.DeviceID
	}
	r.Rang = c.sw.Now().Sub(a.began)
	if r.What != "answered" && !c.done { // the row shows that the user is free again while the caller waits
		c.changeBeside(context.Background())
	}
	a.tell(r)
}

func (a *Attempt) tell(r Result) {
	a.once.Do(func() {
		a.release()
		a.done <- r
	})
}

// claimTime limits Claim.
const claimTime = 20 * time.Second

// attemptAnswered calls Claim for the answering party.
func (c *liveCall) attemptAnswered(ctx context.Context, a *Attempt, l *leg, answer media.Description) {
	a.leg, a.hunt, l.apart = l, nil, true
	if a.o.Claim == nil {
		c.claimed(ctx, a, answer)
		return
	}
	c.wire()
	c.aside(claimTime, func(ctx context.Context) func(context.Context) {
		err := a.o.Claim(ctx)
		return func(ctx context.Context) {
			switch {
			case err != nil:
				c.step("not_claimed", l, detail{"err": err.Error()})
				c.giveUpAttempt(a)
			default:
				c.claimed(ctx, a, answer)
			}
		}
	})
}

// attemptClaimed cancels the other attempts, plays whisper and announcement, and connects the caller.
func (c *liveCall) claimed(ctx context.Context, a *Attempt, answer media.Description) {
	v, l := a.v, a.leg
	for _, other := range append([]*Attempt(nil), v.attempts...) {
		if other != a {
			c.giveUpAttempt(other)
		}
	}
	if c.lostClaim(a) {
		return
	}
	join := func(ctx context.Context) {
		if !c.lostClaim(a) {
			c.joinVisitor(ctx, a, answer)
		}
	}
	if a.o.Whisper == nil {
		c.tellFirst(ctx, l, join)
		return
	}
	playback := l.stream.Play(a.o.Whisper, media.PlayOptions{})
	c.step("whisper", l, nil)
	c.aside(a.o.Whisper.Duration()+loadTimeout, func(ctx context.Context) func(context.Context) {
		select {
		case <-playback.Done():
		case <-ctx.Done():
		}
		return func(ctx context.Context) { c.tellFirst(ctx, l, join) }
	})
}

// attemptLost reports whether the answering party has hung up, or the caller has left the script.
func (c *liveCall) lostClaim(a *Attempt) bool {
	switch {
	case !a.leg.up():
		c.attemptOver(a, Result{What: "lost"})
	case c.visit != a.v || c.done:
		c.giveUpAttempt(a)
	default:
		return false
	}
	return true
}

// connectAttempt connects the caller with the answering party.
func (c *liveCall) joinVisitor(ctx context.Context, a *Attempt, answer media.Description) {
	v, l := a.v, a.leg
	if a.o.Record != nil {
		c.policy.Record = *a.o.Record && !c.policy.Never
	}
	l.apart = false
	c.visit = nil
	v.talks.Store(true)
	began := c.sw.Now()
	l.onOver = append(l.onOver, func() { a.over <- max(c.sw.Now().Sub(began), 0); close(a.over) })
	if !v.leg.up() {
		c.connected(ctx, l, answer)
	} else {
		c.meet(ctx, v, l)
	}
	c.attemptOver(a, Result{What: "answered"})
}

// connectAnswered connects a party with a caller whom the script had answered.
func (c *liveCall) meet(ctx context.Context, v *Visit, l *leg) {
	if c.a == nil {
		c.a = l
	} else {
		c.b = l
	}
	again := !c.answered.IsZero()
	if !again {
		c.answered = c.sw.Now()
		c.sw.stats.answered.Add(1)
	}
	c.assisted = false
	c.wire()
	if c.recording == nil && len(c.recorded) == 0 {
		c.recordByPolicy(ctx)
	}
	c.sides()
	c.alone(false)
	c.agent = l.party()
	c.change(ctx, c.answeredEvent(again))
}

// scriptLegGone handles a leg that hung up during a script. It returns false if the leg is not an attempt of the
// script.
func (c *liveCall) visitorGone(l *leg) bool {
	v := c.visit
	if v == nil || l == v.leg {
		return false
	}
	for _, a := range v.attempts {
		if a.leg == l {
			c.attemptOver(a, Result{What: "lost"})
			c.wire()
			return true
		}
	}
	return l != c.a && l != c.b
}
