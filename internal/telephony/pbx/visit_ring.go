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

// This file is how people are rung for a caller who is led.

// Ringing says how somebody is rung.
type Ringing struct {
	Timeout  time.Duration // 0: 25 s; of each device where they are rung in order
	DeviceID string        // only this one of the user's; "" for all
	InOrder  bool          // one device after the other
	Show     string        // in front of the caller's name, to who is rung
	Music    bool          // the caller goes on hearing what Loop plays, in place of a ringing tone
	Whisper  *media.Clip   // who answers hears it before they are connected
	// Open is asked last before anybody is rung: false gives up, and nobody is. From before it is asked until the attempt is over
	// LettingGo is true of the user, so that whoever takes the attempt back meanwhile can see that they may ring still. nil: always.
	Open func(ctx context.Context) bool
	// Claim is asked when somebody has answered, before they hear anything: an error lets them go again.
	Claim     func(ctx context.Context) error
	Record    *bool  // whether the conversation is recorded, whatever the organisation does; nil: as it does
	Deflected string // the user on whose behalf a number outside is called
}

// A Result is what came of ringing somebody.
type Result struct {
	// What is answered, no_answer, busy, rejected, unreachable, failed, canceled, or lost where who answered hung up again before
	// they were connected.
	What             string
	UserID, DeviceID string
	Number           string
	SIPStatus        int
	Rang             time.Duration
	Refusal          *Refusal // why nobody could be rung at all; nil where they were
}

// An Attempt is somebody being rung for a caller.
type Attempt struct {
	v     *Visit
	o     Ringing
	to    reach
	next  int // the device rung next, where they are rung in order
	began time.Time
	hunt  *hunt
	leg   *leg // who answered
	done  chan Result
	once  sync.Once
	over  chan time.Duration
	free  func() // the user is no longer about to be rung; nil where no user is
}

// Done gives the one result.
func (a *Attempt) Done() <-chan Result { return a.done }

// Over gives, after answered, how long both talked once who answered is no longer in the call.
func (a *Attempt) Over() <-chan time.Duration { return a.over }

// Cancel gives up, where nobody has answered yet.
func (a *Attempt) Cancel() {
	_ = a.v.do(a.v.ctx, func(ctx context.Context) error { a.v.c.giveUpAttempt(a); return nil })
}

// defaultRinging is how long somebody is rung where nothing is said.
const defaultRinging = 25 * time.Second

// Ring rings a user of ours, a number or an address for the caller: user:usr_…, ext:, sip: or a number. Several may be rung at once:
// who answers first, and is claimed, is connected, and the others are given up. It returns at once.
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

// mean says that the user of an attempt is about to be rung, until it or the visit is over. Telephones that ring by then are known by themselves.
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

// find finds the phones of a user, or the way outside.
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

// try begins to ring.
func (c *liveCall) try(ctx context.Context, a *Attempt) {
	v := a.v
	v.attempts = append(v.attempts, a)
	if a.o.InOrder { // devices are made in the order of their ids
		slices.SortStableFunc(a.to.phones, func(x, y Phone) int { return strings.Compare(x.DeviceID, y.DeviceID) })
	}
	c.wire()
	c.ringNext(ctx, a)
}

// ringNext rings who is to be rung, or the next of their devices.
func (c *liveCall) ringNext(ctx context.Context, a *Attempt) {
	to := a.to
	if a.o.InOrder && to.exit == nil {
		to.phones = to.phones[a.next : a.next+1]
		a.next++
	}
	h := c.newHunt("agent", to, a.v.leg)
	h.header, h.unshown, h.by = c.headers, a.v.unshown, a.v.by
	if to.user == nil { // what is meant for our phones is nobody else's
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

// divertedFrom is the number from which a call is led outside: the one dialled, where it came from there, else the user's.
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

// attemptRings tells a caller who was never answered that it rings.
func (c *liveCall) attemptRings(a *Attempt, l *leg, _ sip.Provisional) {
	c.nowRinging(l)
	if caller := a.v.leg; caller.in != nil && !caller.up() && !caller.over {
		caller.in.Ring(180, nil)
	}
}

// attemptFailed tells that nobody answered, or rings the next device.
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

// giveUpAttempt ends an attempt that nobody wants any more.
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

// attemptOver takes an attempt off the visit and tells its result.
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
	if r.What != "answered" && !c.done { // that nobody is rung any more is told while the caller waits on
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

// claimTime bounds asking whether who answered may have the caller.
const claimTime = 20 * time.Second

// attemptAnswered asks whether who answered may have the caller.
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

// claimed gives the caller to who answered: the others are given up, and a whisper is heard first, and what a call of ours is to say.
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

// lostClaim reports that who answered is gone again, or the caller is led elsewhere.
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

// joinVisitor connects the caller with who answered.
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

// meet connects somebody with a caller whom we had answered.
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

// visitorGone is a leg that hung up while a script leads; false where it has nothing to do with one.
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
