package pbx

import (
	"context"
	"hash/maphash"
	"runtime/debug"
	"sync/atomic"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/calltrace"
	"soniq/internal/telephony/pbx/cause"
	"soniq/internal/telephony/pbx/inbox"
	"soniq/internal/telephony/pbx/worktime"
	"soniq/internal/telephony/pbx/writequeue"
)

// message is an event of a leg, or a function to run in the call's goroutine.
type message struct {
	leg     *leg
	event   sip.Event
	run     func(ctx context.Context)
	ifEnded func() // runs instead of run if the call has ended; may be nil
}

// liveCall is a call in progress. Its run goroutine owns all fields. Other goroutines push functions into inbox. Each
// embedded struct has the state of one concern, and is declared in its file.
type liveCall struct {
	sw    *Switch
	inbox *inbox.Inbox[message]
	callIdentity
	callParties
	callSetup
	callDuration
	callHold
	callMedia
	callRecordings
	callTransfer
	callScripts
	callMonitors
	callCommands
	callProgress
	callResume
	callOutcome
	timeline calltrace.Timeline
}

// callIdentity has the id of a call, its record at the start, its caller and the policy of its organisation.
type callIdentity struct {
	id     string
	new    call.New
	caller Caller // authorises outbound routes
	policy Policy
	org    atomic.Pointer[string] // organisation, for readers in other goroutines
}

// callParties has the legs of a call.
type callParties struct {
	a     *leg          // A leg: the caller, or the phone of the user that the call is placed for
	b     *leg          // B leg: the party that answered
	extra []*leg        // further participants
	dials []*forkedDial // dials in progress
	legs  []*leg        // all legs, including ended ones
	agent call.Party    // current or last connected party
}

// callDuration has the times of a call.
type callDuration struct {
	started, ringing, answered time.Time
	ringLimit, maxLength       time.Duration // 0: setting of the switch
	timers                     []*time.Timer
	work                       *worktime.Ledger // time of the people who serve the call
}

func (s *Switch) newCall(n call.New) *liveCall {
	c := &liveCall{sw: s, inbox: inbox.New[message]()}
	c.id, c.new, c.started, c.waiting = n.ID, n, n.StartedAt, map[int]commandReply{}
	c.work, c.wiredTopology = &worktime.Ledger{}, maphash.String(stateSeed, "")
	c.writes = writequeue.New(s.cfg.Log, &c.id)
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
	l := &leg{id: db.NewID("leg")}
	l.role, l.started, l.dirty = role, c.sw.now(), true
	l.dtmfPacer.Interval = minDTMFInterval
	l.owner.Store(c)
	c.legs = append(c.legs, l)
	return l
}

// run processes messages until the call has ended and is written. begin starts the call.
func (c *liveCall) run(ctx context.Context, begin func(ctx context.Context)) {
	c.handle(ctx, message{run: begin})
	for !c.done {
		if m, ok := c.inbox.Pop(); ok {
			c.handle(ctx, m)
			continue
		}
		<-c.inbox.Ready
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

// handle processes one message. If that panics, the call ends and the other calls of the process go on.
func (c *liveCall) handle(ctx context.Context, m message) {
	defer func() {
		if x := recover(); x != nil {
			c.logPanic(x, debug.Stack())
			c.endAfterPanic()
		}
	}()
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
		for _, h := range c.dials {
			h.cancelWith(e.Reason)
		}
		c.hangUpAll(call.Outcome{Reason: "canceled", HangupBy: "caller", SIPStatus: 487, Q850: e.Q850}, cause.NormalClearing)
	case sip.Acked:
		c.onAcked(ctx, l, e)
	case sip.Reinvite:
		c.reinvite(ctx, l, e)
	case sip.Refreshed:
		c.refreshed(ctx, l, e)
	case sip.LateReinviteAnswer:
		c.restoreMedia(l, l.session.LocalMedia())
	case sip.Info:
		c.onInfo(ctx, l, e)
	case sip.Refer:
		c.refer(l, e)
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
	return time.AfterFunc(d, func() { c.inbox.Push(message{run: f}) })
}

// afterWhileActive is after, with a timer that is stopped when the call ends.
func (c *liveCall) afterWhileActive(d time.Duration, f func(ctx context.Context)) *time.Timer {
	t := c.after(d, f)
	c.timers = append(c.timers, t)
	return t
}

// runAsync runs do on its own goroutine with a time limit. The function that do returns then runs in the call's
// goroutine. It is dropped if the call has ended meanwhile. If do panics, the call ends.
func (c *liveCall) runAsync(limit time.Duration, do func(ctx context.Context) func(ctx context.Context)) {
	c.sw.running.Add(1)
	go func() {
		defer c.sw.running.Done()
		defer c.reportPanic()
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if next := do(ctx); next != nil {
			c.inbox.Push(message{run: next})
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
	c.hangUpAll(call.Outcome{Reason: "max_duration", HangupBy: "system"}, cause.NormalClearing)
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
	l.over, l.ended, l.reason, l.status, l.dirty = true, c.sw.now(), reason, status, true
	l.closeStream()
	for _, f := range l.onOver {
		f()
	}
	l.onOver = nil
	if l.caller.UserID != "" && l.sip != nil {
		c.sw.releases.AddEnded(l.caller.UserID, l.sip.Done())
	}
	c.addEntry("leg.ended", l, detail{"reason": reason, "sip_status": status})
	l.releaseResources()
}
