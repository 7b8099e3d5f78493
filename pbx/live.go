package pbx

import (
	"context"
	"time"

	"soniq/call"
	"soniq/media"
	"soniq/sip"
)

// A leg is one side of a call: a dialog beside a media stream.
type leg struct {
	role    string // caller or callee
	sip     *sip.Leg
	session *media.Session
	phone   *Phone    // the registered contact rung
	trunk   *TrunkOut // the trunk called through
	release func()    // gives the trunk's channel back
	held    bool
	over    bool
}

// A liveCall is a call in progress. Its run goroutine owns every field; everyone else pushes into inbox.
type liveCall struct {
	sw    *Switch
	id    string
	in    *sip.Inbound
	inbox *inbox
	plan  plan

	a    *leg   // the caller
	b    *leg   // who answered
	ring []*leg // phones and trunks being tried
	next int    // the next trunk to try

	streamA, streamB *media.Stream
	offer            media.Description // of the caller; zero for a late offer
	toCaller         []byte            // our answer to the caller, fixed by the first early media
	recording        *recording

	started, ringing, answered time.Time
	heldSince                  time.Time
	hold                       time.Duration
	busyOffer                  bool // a re-INVITE is being passed on
	offered                    int
	worst                      *sip.Failed // the failure to show the caller
	began, done                bool
	ledger                     ledger
	outcome                    call.Outcome
	deadline                   *time.Timer
}

// run carries the call from its INVITE to its record.
func (c *liveCall) run(ctx context.Context) {
	c.deadline = time.NewTimer(c.sw.RingTimeout)
	defer c.deadline.Stop()
	c.setUp(ctx)
	c.sw.door.leave()
	for !c.done {
		m, ok := c.inbox.pop()
		if ok {
			c.handle(ctx, m)
			continue
		}
		select {
		case <-c.inbox.ready:
		case <-c.deadline.C:
			c.timeUp()
		}
	}
	c.finish(ctx)
}

// setUp routes the call, rings, and writes its row while the phone rings.
func (c *liveCall) setUp(ctx context.Context) {
	p, err := c.sw.route(ctx, c)
	c.plan = p
	if err != nil {
		c.sw.Log.Error("call not routed", "call", c.id, "org", p.new.Org, "err", err)
		c.reject(503, "Service Unavailable", call.Outcome{Reason: "no_route", HangupBy: "system", SIPStatus: 503})
		return
	}
	if c.plan.refusal == nil {
		c.plan.refusal = c.openMedia()
	}
	if r := c.plan.refusal; r != nil {
		c.sw.stats.gated.Add(1)
		c.begin(ctx)
		c.reject(r.Status, r.Phrase, call.Outcome{Reason: r.Reason, HangupBy: "system", SIPStatus: r.Status})
		return
	}
	c.ringOut(ctx)
	if !c.done && !c.begin(ctx) {
		c.hangUpLegs(sip.Reason{Q850: tempFailure})
		c.reject(503, "Service Unavailable", call.Outcome{Reason: "no_route", HangupBy: "system", SIPStatus: 503})
	}
}

// begin writes the call's row. A call that cannot be written down is not carried.
func (c *liveCall) begin(ctx context.Context) bool {
	if c.plan.new.Org == "" {
		return false
	}
	c.began = true // also where only the answer of a write was lost: ending a call that is not there does no harm
	if err := c.sw.Records.Begin(ctx, c.plan.new); err != nil {
		c.sw.Log.Error("call not written", "call", c.id, "org", c.plan.new.Org, "err", err)
		return false
	}
	return true
}

// reject refuses the caller and ends the call.
func (c *liveCall) reject(status int, phrase string, o call.Outcome) {
	if !c.a.over {
		c.in.Reject(status, phrase, 0)
	}
	c.end(o)
}

// end makes run stop after this message. The first reason counts.
func (c *liveCall) end(o call.Outcome) {
	if !c.done {
		c.outcome, c.done = o, true
	}
}

// handle is one step of the call.
func (c *liveCall) handle(ctx context.Context, m message) {
	switch e := m.event.(type) {
	case shutdown:
		c.hangUpAll(call.Outcome{Reason: "shutdown", HangupBy: "system"}, normalUnspec)
	case preempted:
		c.hangUpAll(call.Outcome{Reason: "blocked", HangupBy: "system", Q850: preemption}, preemption)
	case reinvited:
		c.busyOffer = false
		c.reinviteDone(ctx, e)
	case sip.Provisional:
		c.progress(m.leg, e)
	case sip.Answered:
		c.pickedUp(ctx, m.leg, e)
	case sip.Failed:
		c.failed(ctx, m.leg, e)
	case sip.Canceled:
		m.leg.over = true
		c.hangUpAll(call.Outcome{Reason: "canceled", HangupBy: "caller", SIPStatus: 487, Q850: e.Q850}, normalClearing)
	case sip.Acked:
		c.acked(m.leg, e)
	case sip.Reinvite:
		c.reinvite(m.leg, e)
	case sip.Info:
		c.info(m.leg, e)
	case sip.Refer:
		e.Respond(603)
	case sip.Bye:
		m.leg.over = true
		c.bye(m.leg, e)
	case sip.Lost:
		m.leg.over = true
		c.lost(m.leg)
	case sip.Closed:
		m.leg.over = true
	}
}

// bye ends the call because one side hung up.
func (c *liveCall) bye(l *leg, e sip.Bye) {
	by := "callee"
	if l == c.a {
		by = "caller"
	} else if c.plan.user != nil {
		by = "agent"
	}
	q850 := e.Q850
	if q850 == 0 {
		q850 = normalClearing
	}
	c.hangUpAll(call.Outcome{Reason: by + "_hangup", HangupBy: by, Q850: q850}, q850)
}

// lost ends the call because one side can no longer be reached.
func (c *liveCall) lost(l *leg) {
	if l != c.a && l != c.b {
		c.failed(context.Background(), l, sip.Failed{Status: 408})
		return
	}
	c.hangUpAll(call.Outcome{Reason: "timeout", HangupBy: "system"}, tempFailure)
}

// timeUp ends a call that rings, or lasts, too long.
func (c *liveCall) timeUp() {
	if !c.answered.IsZero() {
		c.hangUpAll(call.Outcome{Reason: "max_duration", HangupBy: "system"}, normalClearing)
		return
	}
	c.hangUpLegs(sip.Reason{Q850: noAnswer})
	c.reject(480, "No answer", call.Outcome{Reason: "no_answer", HangupBy: "system", SIPStatus: 480, Q850: noAnswer})
}

// hangUpAll ends every leg and the call.
func (c *liveCall) hangUpAll(o call.Outcome, q850 int) {
	c.hangUpLegs(sip.Reason{Q850: q850})
	if !c.a.over {
		c.a.sip.Bye(sip.Reason{Q850: q850})
	}
	c.end(o)
}

// hangUpLegs ends everything but the caller's leg.
func (c *liveCall) hangUpLegs(r sip.Reason) {
	for _, l := range c.ring {
		if !l.over {
			l.sip.Cancel()
		}
	}
	if c.b != nil && !c.b.over {
		c.b.sip.Bye(r)
	}
}
