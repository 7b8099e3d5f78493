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

// A liveCall is a call in progress. Its run goroutine owns every field; everyone else pushes into inbox.
type liveCall struct {
	sw     *Switch
	id     string
	new    call.New
	caller Caller // on whose account ways outside are opened
	policy Policy
	inbox  *inbox
	org    atomic.Pointer[string] // for those who look for the call

	a     *leg    // who called, or the phone of the user the call is placed for
	b     *leg    // who answered
	extra []*leg  // further participants
	hunts []*hunt // what rings
	legs  []*leg  // every leg there ever was

	verstat   string // what verifying a caller from outside came to, as telephones are told; "" where nobody looked
	transfer  *transfer
	visit     *Visit   // of a caller whom a script leads
	visits    []*Visit // all there were
	monitors  []*monitor
	mixer     *media.Mixer
	wired     string // what the media was last told
	recording *recording
	recorded  []*recording    // stopped before the end
	given     []call.LegState // legs another call took over

	started, ringing, answered time.Time
	heldSince                  time.Time
	hold                       time.Duration
	transferredTo              string
	cut                        *cut // by a crash, until both sides are back
	holdMusic                  *media.Clip
	ringLimit, maxLength       time.Duration // 0: the switch's
	headers                    []sip.Header  // that a program wants its phones and its destination to get
	machine                    *bool
	words                      *words // that who answers hears before anything else
	offered                    int
	limits                     []*time.Timer

	commands    int
	waiting     map[int]reply // commands that are not confirmed yet
	onEnd       []func()
	opening     *opening // while its row is being written
	began, done bool
	assisted    bool // who answered is an AI agent
	told        bool // the story is to be written down
	urgent      bool // it came in where others are turned away, as it may be one for help
	restored    bool // from before a restart: legs may be open that are not known here
	suspendable bool // its dialogs were written down
	revision    int
	inRow       uint64 // hash of the state in the last change
	ledger      ledger
	outcome     call.Outcome
	story       story
	agent       call.Party // who is connected, or was last
}

func (s *Switch) newCall(n call.New) *liveCall {
	c := &liveCall{sw: s, id: n.ID, new: n, started: n.StartedAt, inbox: newInbox(), waiting: map[int]reply{}}
	c.ledger.log, c.ledger.call = s.Log, c.id
	return c
}

// orgNow is the organisation of the call; it is known once the call is routed.
func (c *liveCall) orgNow() string {
	if p := c.org.Load(); p != nil {
		return *p
	}
	return ""
}

// belong says whose call it is.
func (c *liveCall) belong() {
	org := c.new.Org
	c.org.Store(&org)
}

// newLeg adds a leg to the call.
func (c *liveCall) newLeg(role string) *leg {
	l := &leg{id: db.NewID("leg"), role: role, started: c.sw.Now(), dirty: true}
	l.keys.Every = leastKey
	l.owner.Store(c)
	c.legs = append(c.legs, l)
	return l
}

// carry runs the call until it is over and written down. begin starts it.
func (c *liveCall) carry(ctx context.Context, begin func(ctx context.Context)) {
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

// end makes carry stop after this message. The first reason counts.
func (c *liveCall) end(o call.Outcome) {
	if !c.done {
		if c.visit != nil && o.Missed == "" {
			o.Missed = c.visit.missed
		}
		c.outcome, c.done = o, true
	}
}

// handle is one step of the call.
func (c *liveCall) handle(ctx context.Context, m message) {
	if m.run != nil {
		m.run(ctx)
		return
	}
	if o := m.leg.owner.Load(); o != c { // given away while this was on its way
		m.leg.tell(m.event)
		return
	}
	c.event(ctx, m.leg, m.event)
}

// event is something that happened on a leg.
func (c *liveCall) event(ctx context.Context, l *leg, event sip.Event) {
	switch e := event.(type) {
	case sip.Provisional:
		c.progress(l, e)
	case sip.Answered:
		c.pickedUp(ctx, l, e)
	case sip.Failed:
		c.failed(ctx, l, e)
	case sip.Canceled:
		c.legOver(l, "canceled", 487)
		c.hangUpAll(call.Outcome{Reason: "canceled", HangupBy: "caller", SIPStatus: 487, Q850: e.Q850}, normalClearing)
	case sip.Acked:
		c.acked(l, e)
	case sip.Reinvite:
		c.reinvite(ctx, l, e)
	case sip.Refreshed:
		c.refreshed(ctx, l, e)
	case sip.Belated:
		c.restore(l, l.session.Ours())
	case sip.Info:
		c.info(ctx, l, e)
	case sip.Refer:
		c.refer(ctx, l, e)
	case sip.Bye:
		c.legOver(l, "", 0)
		c.bye(ctx, l, e)
	case sip.Lost:
		c.legOver(l, "timeout", 408)
		c.lost(ctx, l, e)
	case sip.Closed:
		c.legOver(l, "", 0)
	}
}

// later runs f in the call's goroutine when d has passed, unless the call is over by then.
func (c *liveCall) later(d time.Duration, f func(ctx context.Context)) *time.Timer {
	return time.AfterFunc(d, func() { c.inbox.push(message{run: f}) })
}

// limit is later for something that ends with the call.
func (c *liveCall) limit(d time.Duration, f func(ctx context.Context)) *time.Timer {
	t := c.later(d, f)
	c.limits = append(c.limits, t)
	return t
}

// aside does something that waits, outside the call's goroutine, and hands what is to be done next back into it. When the
// call is over meanwhile, that is dropped.
func (c *liveCall) aside(limit time.Duration, do func(ctx context.Context) func(ctx context.Context)) {
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

// other is the opposite side of a two-party call.
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

// near is the side of our own user, far the one it talks to. Between two users near is who was called.
func (c *liveCall) near() *leg {
	if c.b != nil && (c.b.caller.UserID != "" || c.a == nil || c.a.caller.UserID == "") {
		return c.b
	}
	return c.a
}

func (c *liveCall) far() *leg { return c.other(c.near()) }

// legOf finds a leg that is up by its id.
func (c *liveCall) legOf(id string) *leg {
	for _, l := range c.legs {
		if l.id == id && l.up() && l.owner.Load() == c {
			return l
		}
	}
	return nil
}

// timeUp ends a call that lasts too long. One for help never does.
func (c *liveCall) timeUp(context.Context) {
	if c.forHelp() {
		return
	}
	c.hangUpAll(call.Outcome{Reason: "max_duration", HangupBy: "system"}, normalClearing)
}

// hangUpAll ends every leg and the call.
func (c *liveCall) hangUpAll(o call.Outcome, q850 int) {
	for _, h := range c.hunts {
		h.stop()
	}
	for _, l := range c.legs {
		c.hangUp(l, sip.Reason{Q850: q850})
	}
	c.end(o)
}

// hangUp ends one leg of ours, in whatever state it is.
func (c *liveCall) hangUp(l *leg, r sip.Reason) {
	if l == nil || l.over || l.sip == nil || l.owner.Load() != c {
		return
	}
	l.sip.Bye(r)
	c.legOver(l, "", 0)
}

// legOver writes down that a leg ended.
func (c *liveCall) legOver(l *leg, reason string, status int) {
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
		c.sw.parting.ends(l.caller.UserID, l.sip.Gone())
	}
	c.step("leg.ended", l, detail{"reason": reason, "sip_status": status})
	l.free()
}
