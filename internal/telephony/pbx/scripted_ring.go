package pbx

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"soniq/internal/protocol/media"
	"soniq/internal/protocol/media/clip"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/cause"
)

// Ringing of users and numbers for a scripted call.

// RingOptions holds the options of Ring.
type RingOptions struct {
	Timeout  time.Duration // 0: 25 s; per device with InOrder
	DeviceID string        // only this device of the user; empty: all
	InOrder  bool          // one device after the other
	// AwaitReconnect waits for a phone whose connection is closed while it rings. Without it the next phone is rung at once.
	AwaitReconnect bool
	Show           string     // prefix of the caller's display name
	Music          bool       // the caller hears the loop instead of ringback
	Whisper        *clip.Clip // played to the answering party before it is connected
	// BeforeRing is called last before any phone rings; if it returns false, no phone rings. HasPendingRelease is
	// true for the user from before this call until the attempt ends. A process that cancels the attempt meanwhile
	// can therefore see that the user may still ring. nil: always ring.
	BeforeRing func(ctx context.Context) bool
	// Claim is called when a party has answered, before it hears anything. An error disconnects that party.
	Claim      func(ctx context.Context) error
	Record     *bool  // record the conversation, overriding the organisation's setting; nil: no override
	DivertedBy string // user on whose behalf an external number is called
}

// Result is the result of an Attempt.
type Result struct {
	// Status is answered, no_answer, busy, rejected, unreachable, failed, canceled, or lost. It is lost if the
	// answering party hung up before it was connected.
	Status           string
	UserID, DeviceID string
	Number           string
	SIPStatus        int
	Rang             time.Duration
	Refusal          *Refusal // reason if no phone could be rung; otherwise nil
}

// Attempt is one ring of a destination for a caller.
type Attempt struct {
	v        *ScriptedCall
	options  RingOptions
	to       resolvedDestination
	next     int // index of the next device with InOrder
	began    time.Time
	dial     *forkedDial
	leg      *leg // the answering leg
	done     chan Result
	once     sync.Once
	talkTime chan time.Duration
	free     func() // removes the user from the planned releases; nil without a user
}

// Done returns the channel with the single result.
func (a *Attempt) Done() <-chan Result { return a.done }

// TalkTime returns a channel that, after answered, receives the duration of the conversation when the answering party
// has left the call.
func (a *Attempt) TalkTime() <-chan time.Duration { return a.talkTime }

// Cancel cancels the attempt if no party has answered yet.
func (a *Attempt) Cancel() {
	_ = a.v.do(a.v.ctx, func(ctx context.Context) error { a.v.c.cancelAttempt(a); return nil })
}

// defaultRinging is the ring time without a timeout.
const defaultRinging = 25 * time.Second

// Ring rings a user, a number or an address for the caller: user:usr_…, ext:, sip: or a number. Several attempts
// may run at once. The first answer that is claimed is connected, and the other attempts are canceled. It returns at
// once.
func (v *ScriptedCall) Ring(ctx context.Context, to string, o RingOptions) (*Attempt, error) {
	a := &Attempt{v: v, options: o, done: make(chan Result, 1), talkTime: make(chan time.Duration, 1), began: v.c.sw.now()}
	r, refusal, err := v.resolve(ctx, to, o)
	if err != nil {
		return nil, err
	}
	if refusal != nil {
		r.release()
		v.c.addEntry("ring.skipped", nil, detail{"to": to, "reason": refusal.Reason, "phrase": refusal.Phrase})
		what := "failed"
		if refusal.Reason == "no_answer" {
			what = "unreachable"
		}
		a.finish(Result{Status: what, SIPStatus: refusal.Status, Refusal: refusal})
		return a, nil
	}
	a.to = r
	v.markPlanned(a)
	if o.BeforeRing != nil && !o.BeforeRing(ctx) {
		r.release()
		a.finish(Result{Status: "canceled"})
		return a, nil
	}
	err = v.do(ctx, func(ctx context.Context) error { v.c.startAttempt(ctx, a); return nil })
	if err != nil {
		r.release()
		a.release()
	}
	return a, err
}

// markPlanned records that the user of an attempt is about to be rung, until the attempt or the scripted call ends.
// Ringing phones are recorded by themselves.
func (v *ScriptedCall) markPlanned(a *Attempt) {
	if a.to.user == nil {
		return
	}
	done := v.c.sw.releases.AddPlanned(a.to.user.UserID)
	forget := context.AfterFunc(v.ctx, done)
	a.free = func() { forget(); done() }
}

func (a *Attempt) release() {
	if a.free != nil {
		a.free()
	}
}

// resolve returns the phones of a user, or the outbound route.
func (v *ScriptedCall) resolve(ctx context.Context, to string, o RingOptions) (resolvedDestination, *Refusal, error) {
	c := v.c
	from := c.caller
	from.Org, from.Program, from.ShowNumber = v.info.Org, true, ""
	if o.DivertedBy != "" {
		d, ok, err := c.sw.cfg.Identity.User(ctx, v.info.Org, o.DivertedBy)
		if err != nil {
			return resolvedDestination{}, nil, err
		}
		if ok {
			from = callerOf(d, "")
			from.Org, from.Program = v.info.Org, true
		}
	}
	return c.sw.resolveDirect(ctx, from, to, o.DeviceID)
}

// startAttempt starts to ring.
func (c *liveCall) startAttempt(ctx context.Context, a *Attempt) {
	v := a.v
	v.attempts = append(v.attempts, a)
	if a.options.InOrder { // device ids are in order of creation
		slices.SortStableFunc(a.to.phones, func(x, y Phone) int { return strings.Compare(x.DeviceID, y.DeviceID) })
	}
	c.wireMedia()
	c.ringNext(ctx, a)
}

// ringNext rings the destination, or its next device with InOrder.
func (c *liveCall) ringNext(ctx context.Context, a *Attempt) {
	to := a.to
	if a.options.InOrder && to.outbound == nil {
		to.phones = to.phones[a.next : a.next+1]
		a.next++
	}
	h := c.newDial("agent", to, a.v.leg)
	h.header, h.hideCaller, h.transferredBy = c.headers, a.v.hideCaller, a.v.transferredBy
	if to.user == nil { // these headers are for our phones only
		h.role, h.header = "callee", nil
	}
	if a.options.Show != "" {
		h.from.Display = a.options.Show + ": " + firstText(h.from.Display, h.from.URI.User)
	}
	if in := a.v.leg.in; in != nil {
		h.maxForwards, h.diversion, h.passports = max(in.MaxForwards-1, 1), in.Diversion, a.v.leg.passports()
	}
	if a.options.DivertedBy != "" && to.outbound != nil {
		h.diversion, h.history = append([]sipmsg.Address{{URI: sipmsg.URI{User: c.divertedFrom(to.outbound)}}}, h.diversion...), true
	}
	h.onRing = func(l *leg, e sip.Provisional) { c.attemptRings(a, l, e) }
	h.onAnswer = func(ctx context.Context, l *leg, answer sdp.Description) { c.attemptAnswered(ctx, a, l, answer) }
	h.onFail = func(ctx context.Context, e sip.Failed) { c.attemptFailed(ctx, a, e) }
	h.awaitsLost = a.options.AwaitReconnect && !a.options.InOrder
	a.dial = h
	limit := a.options.Timeout
	if limit <= 0 {
		limit = defaultRinging
	}
	h.start(ctx, limit)
}

// divertedFrom returns the number that diverts a call to an external number: the dialled one for inbound calls,
// otherwise the user's.
func (c *liveCall) divertedFrom(e *OutboundRoute) string {
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
	c.firstRinging(l)
	if caller := a.v.leg; caller.in != nil && !caller.up() && !caller.over {
		caller.in.Ring(180, nil)
	}
}

// attemptFailed rings the next device, or finishes the attempt.
func (c *liveCall) attemptFailed(ctx context.Context, a *Attempt, e sip.Failed) {
	if a.options.InOrder && a.to.outbound == nil && a.next < len(a.to.phones) {
		c.ringNext(ctx, a)
		return
	}
	c.finishAttempt(a, Result{Status: unansweredReason(e), SIPStatus: e.Status})
	if !c.done {
		c.wireMedia()
	}
}

// cancelAttempt cancels an attempt.
func (c *liveCall) cancelAttempt(a *Attempt) {
	if a.dial != nil {
		a.dial.cancelWith(a.cancelReason())
		a.dial.stop()
	}
	if a.leg != nil {
		c.hangUp(a.leg, sip.Reason{Q850: cause.NormalClearing})
	}
	c.finishAttempt(a, Result{Status: "canceled"})
	c.wireMedia()
}

// finishAttempt removes an attempt from the scripted call and delivers its result.
func (c *liveCall) finishAttempt(a *Attempt, r Result) {
	a.v.attempts = without(a.v.attempts, a)
	a.dial = nil
	if a.to.user != nil {
		r.UserID, r.Number = a.to.user.UserID, a.to.user.Extension
	} else if a.to.outbound != nil {
		r.Number = a.to.outbound.Number
	}
	if a.leg != nil {
		r.DeviceID = a.leg.caller.DeviceID
	}
	r.Rang = c.sw.now().Sub(a.began)
	if r.Status != "answered" && !c.done { // the row shows that the user is free again while the caller waits
		c.changeAsync(context.Background())
	}
	a.finish(r)
}

func (a *Attempt) finish(r Result) {
	a.once.Do(func() {
		a.release()
		a.done <- r
	})
}

// claimTime limits Claim.
const claimTime = 20 * time.Second

// attemptAnswered calls Claim for the answering party.
func (c *liveCall) attemptAnswered(ctx context.Context, a *Attempt, l *leg, answer sdp.Description) {
	a.leg, a.dial, l.isolated = l, nil, true
	if a.options.Claim == nil {
		c.attemptClaimed(ctx, a, answer)
		return
	}
	c.wireMedia()
	c.runAsync(claimTime, func(ctx context.Context) func(context.Context) {
		err := a.options.Claim(ctx)
		return func(ctx context.Context) {
			switch {
			case err != nil:
				c.addEntry("ring.claim_failed", l, detail{"err": err.Error()})
				c.cancelAttempt(a)
			default:
				c.attemptClaimed(ctx, a, answer)
			}
		}
	})
}

// attemptClaimed cancels the other attempts, plays whisper and announcement, and connects the caller.
func (c *liveCall) attemptClaimed(ctx context.Context, a *Attempt, answer sdp.Description) {
	v, l := a.v, a.leg
	for _, other := range append([]*Attempt(nil), v.attempts...) {
		if other != a {
			c.cancelAttempt(other)
		}
	}
	if c.attemptLost(a) {
		return
	}
	join := func(ctx context.Context) {
		if !c.attemptLost(a) {
			c.connectAttempt(ctx, a, answer)
		}
	}
	if a.options.Whisper == nil {
		c.playBeforeConnect(ctx, l, join)
		return
	}
	playback := l.stream.Play(a.options.Whisper, media.PlayOptions{})
	c.addEntry("whisper.played", l, nil)
	c.runAsync(a.options.Whisper.Duration()+loadTimeout, func(ctx context.Context) func(context.Context) {
		select {
		case <-playback.Done():
		case <-ctx.Done():
		}
		return func(ctx context.Context) { c.playBeforeConnect(ctx, l, join) }
	})
}

// attemptLost reports whether the answering party has hung up, or the caller has left the script.
func (c *liveCall) attemptLost(a *Attempt) bool {
	switch {
	case !a.leg.up():
		c.finishAttempt(a, Result{Status: "lost"})
	case c.scripted != a.v || c.done:
		c.cancelAttempt(a)
	default:
		return false
	}
	return true
}

// connectAttempt connects the caller with the answering party.
func (c *liveCall) connectAttempt(ctx context.Context, a *Attempt, answer sdp.Description) {
	v, l := a.v, a.leg
	if a.options.Record != nil {
		c.policy.Record = *a.options.Record && !c.policy.Never
	}
	l.isolated = false
	c.scripted = nil
	v.connected.Store(true)
	if v.returns {
		v.party = l
	}
	began := c.sw.now()
	l.onOver = append(l.onOver, func() { a.talkTime <- max(c.sw.now().Sub(began), 0); close(a.talkTime) })
	if !v.leg.up() {
		c.connected(ctx, l, answer)
	} else {
		c.connectAnswered(ctx, l)
	}
	c.finishAttempt(a, Result{Status: "answered"})
}

// connectAnswered connects a party with a caller whom the script had answered.
func (c *liveCall) connectAnswered(ctx context.Context, l *leg) {
	if c.a == nil {
		c.a = l
	} else {
		c.b = l
	}
	again := !c.answered.IsZero()
	if !again {
		c.answered = c.sw.now()
		c.sw.stats.answered.Add(1)
	}
	c.answeredByAI = false
	c.wireMedia()
	if c.recording == nil && len(c.recorded) == 0 {
		c.recordByPolicy(ctx)
	}
	c.updateRecordingSides()
	c.suspendRecording(false)
	c.agent = l.party()
	c.change(ctx, c.answeredEvent(again))
}

// scriptLegGone handles a leg that hung up during a script. It returns false if the leg is not an attempt of the
// script.
func (c *liveCall) scriptLegGone(l *leg) bool {
	v := c.scripted
	if v == nil || l == v.leg {
		return false
	}
	for _, a := range v.attempts {
		if a.leg == l {
			c.finishAttempt(a, Result{Status: "lost"})
			c.wireMedia()
			return true
		}
	}
	return l != c.a && l != c.b
}
