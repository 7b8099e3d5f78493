package pbx

import (
	"context"
	"sync/atomic"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/protocol/media"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
)

// liveCall is a call in progress. Its run goroutine owns all fields. Other goroutines push functions into inbox.
type liveCall struct {
	sw     *Switch
	id     string
	new    call.New
	caller Caller // authorises outbound routes
	policy Policy
	inbox  *inbox
	org    atomic.Pointer[string] // organisation, for readers in other goroutines

	a     *leg          // A leg: the caller, or the phone of the user that the call is placed for
	b     *leg          // B leg: the party that answered
	extra []*leg        // further participants
	dials []*forkedDial // dials in progress
	legs  []*leg        // all legs, including ended ones

	verstat       string // verification result (verstat) of an external caller; empty if not verified
	transfer      *transfer
	scripted      *ScriptedCall   // set while a script controls the caller
	allScripted   []*ScriptedCall // all scripted calls, including ended ones
	monitors      []*monitor
	mixer         *media.Mixer
	wiredTopology string // topology last given to the media
	recording     *recording
	recorded      []*recording    // stopped before the end
	detachedLegs  []call.LegState // final rows of legs that moved to another call

	started, ringing, answered time.Time
	heldSince                  time.Time
	hold                       time.Duration
	transferredTo              string
	interruption               *interruption // set after a crash, until both sides are back
	holdMusic                  *media.Clip
	ringLimit, maxLength       time.Duration // 0: setting of the switch
	headers                    []sip.Header  // set by the API for the INVITEs to our phones and to the destination
	machine                    *bool
	announcement               *connectAnnouncement // played to the answering party before it is connected
	offered                    int
	timers                     []*time.Timer

	commands      int
	waiting       map[int]commandReply // unconfirmed commands
	onEnd         []func()
	pendingInsert *pendingInsert // set while the INSERT of its row runs
	began, done   bool
	answeredByAI  bool // the answering party is an AI agent
	keepTimeline  bool // the timeline is to be written
	urgent        bool // admitted under overload as a possible emergency call
	restored      bool // from before a restart; may have legs that are not known here
	suspendable   bool // its dialogs have been written
	revision      int
	lastStateHash uint64 // hash of the state in the last change
	writes        writeQueue
	outcome       call.Outcome
	timeline      timeline
	agent         call.Party // current or last connected party
}

func (s *Switch) newCall(n call.New) *liveCall {
	c := &liveCall{sw: s, id: n.ID, new: n, started: n.StartedAt, inbox: newInbox(), waiting: map[int]commandReply{}}
	c.writes.log, c.writes.callID = s.Log, c.id
	return c
}

// orgNow returns the organisation of the call; empty before the call is routed. It may be called from any goroutine.
func (c *liveCall) orgNow() string {
	if p := c.org.Load(); p != nil {
		return *p
	}
	return ""
}

// publishOrg makes the organisation visible to orgNow.
func (c *liveCall) publishOrg() {
	org := c.new.Org
	c.org.Store(&org)
}

// newLeg adds a leg to the call.
func (c *liveCall) newLeg(role string) *leg {
	l := &leg{id: db.NewID("leg"), role: role, started: c.sw.Now(), dirty: true}
	l.dtmfPacer.Interval = minDTMFInterval
	l.owner.Store(c)
	c.legs = append(c.legs, l)
	return l
}

// run processes messages until the call has ended and is written. begin starts the call.
func (c *liveCall) run(ctx context.Context, begin func(ctx context.Context)) {
	begin(ctx)
	for !c.done {
		if m, ok := c.inbox.pop(); ok {
			c.handle(ctx, m)
			continue
		}
		<-c.inbox.ready
	}
	c.finish(ctx)
}

// end makes run return after the current message. Only the first outcome counts.
func (c *liveCall) end(o call.Outcome) {
	if !c.done {
		if c.scripted != nil && o.Missed == "" {
			o.Missed = c.scripted.missed
		}
		c.outcome, c.done = o, true
	}
}

// handle processes one message.
func (c *liveCall) handle(ctx context.Context, m message) {
	if m.run != nil {
		m.run(ctx)
		return
	}
	if o := m.leg.owner.Load(); o != c { // the leg moved to another call after the message was pushed
		m.leg.deliver(m.event)
		return
	}
	c.event(ctx, m.leg, m.event)
}

// event handles an event of a leg.
func (c *liveCall) event(ctx context.Context, l *leg, event sip.Event) {
	switch e := event.(type) {
	case sip.Provisional:
		c.onProvisional(l, e)
	case sip.Answered:
		c.onAnswered(ctx, l, e)
	case sip.Failed:
		c.onFailed(ctx, l, e)
	case sip.Canceled:
		c.markLegEnded(l, "canceled", 487)
		c.hangUpAll(call.Outcome{Reason: "canceled", HangupBy: "caller", SIPStatus: 487, Q850: e.Q850}, normalClearing)
	case sip.Acked:
		c.onAcked(l, e)
	case sip.Reinvite:
		c.reinvite(ctx, l, e)
	case sip.Refreshed:
		c.refreshed(ctx, l, e)
	case sip.LateReinviteAnswer:
		c.restoreMedia(l, l.session.LocalMedia())
	case sip.Info:
		c.onInfo(ctx, l, e)
	case sip.Refer:
		c.refer(ctx, l, e)
	case sip.Bye:
		c.markLegEnded(l, "", 0)
		c.onBye(ctx, l, e)
	case sip.Lost:
		c.markLegEnded(l, "timeout", 408)
		c.onLost(ctx, l, e)
	case sip.Closed:
		c.markLegEnded(l, "", 0)
	}
}

// after runs f in the call's goroutine after d, unless the call has ended by then.
func (c *liveCall) after(d time.Duration, f func(ctx context.Context)) *time.Timer {
	return time.AfterFunc(d, func() { c.inbox.push(message{run: f}) })
}

// afterWhileActive is after, with a timer that is stopped when the call ends.
func (c *liveCall) afterWhileActive(d time.Duration, f func(ctx context.Context)) *time.Timer {
	t := c.after(d, f)
	c.timers = append(c.timers, t)
	return t
}

// runAsync runs do on its own goroutine with a time limit. The function that do returns then runs in the call's
// goroutine. It is dropped if the call has ended meanwhile.
func (c *liveCall) runAsync(limit time.Duration, do func(ctx context.Context) func(ctx context.Context)) {
	c.sw.running.Add(1)
	go func() {
		defer c.sw.running.Done()
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if next := do(ctx); next != nil {
			c.inbox.push(message{run: next})
		}
	}()
}

// other returns the opposite leg of a two-party call; nil if there is none.
func (c *liveCall) other(l *leg) *leg {
	switch l {
	case nil:
		return nil
	case c.a:
		return c.b
	case c.b:
		return c.a
	}
	return nil
}

// near returns the leg of our own user, far the leg it talks to. Between two users near is the called one.
func (c *liveCall) near() *leg {
	if c.b != nil && (c.b.caller.UserID != "" || c.a == nil || c.a.caller.UserID == "") {
		return c.b
	}
	return c.a
}

func (c *liveCall) far() *leg { return c.other(c.near()) }

// legOf returns a connected leg by id; nil if there is none.
func (c *liveCall) legOf(id string) *leg {
	for _, l := range c.legs {
		if l.id == id && l.up() && l.owner.Load() == c {
			return l
		}
	}
	return nil
}

// maxDurationReached ends a call that reached its maximum duration. Emergency calls continue.
func (c *liveCall) maxDurationReached(context.Context) {
	if c.isEmergency() {
		return
	}
	c.hangUpAll(call.Outcome{Reason: "max_duration", HangupBy: "system"}, normalClearing)
}

// hangUpAll ends all legs and the call.
func (c *liveCall) hangUpAll(o call.Outcome, q850 int) {
	for _, h := range c.dials {
		h.stop()
	}
	for _, l := range c.legs {
		c.hangUp(l, sip.Reason{Q850: q850})
	}
	c.end(o)
}

// hangUp ends one leg in any state.
func (c *liveCall) hangUp(l *leg, r sip.Reason) {
	if l == nil || l.over || l.sip == nil || l.owner.Load() != c {
		return
	}
	l.sip.Bye(r)
	c.markLegEnded(l, "", 0)
}

// markLegEnded records the end of a leg, and releases its resources.
func (c *liveCall) markLegEnded(l *leg, reason string, status int) {
	if l.over {
		return
	}
	l.over, l.ended, l.reason, l.status, l.dirty = true, c.sw.Now(), reason, status, true
	l.closeStream()
	for _, f := range l.onOver {
		f()
	}
	l.onOver = nil
	if l.caller.UserID != "" && l.sip != nil {
		c.sw.releases.addEnded(l.caller.UserID, l.sip.Done())
	}
	c.addEntry("leg.ended", l, detail{"reason": reason, "sip_status": status})
	l.releaseResources()
}
