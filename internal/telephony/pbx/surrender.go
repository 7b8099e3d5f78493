package pbx

import (
	"context"
	"slices"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/protocol/media"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
)

// A surrender asks a call to give away who is on its other side, because its phone joins two calls.
type surrender struct {
	second *leg // the phone's leg of the call that is asked
	to     *liveCall
	back   func(gift) bool // false when the other call is over
}

// A gift is who was on the other side: a leg, those who still ring, or where the phone was led, such as a queue. The zero gift is nobody.
type gift struct {
	leg     *leg
	ringing *hunt
	lead    Lead
	rings   time.Duration // how long they may ring still
	dialled string
}

// discard hangs up who was given to a call that is over.
func (g gift) discard() {
	if g.leg != nil {
		g.leg.sip.Bye(sip.Reason{Q850: normalClearing})
		g.leg.stream.Close()
	}
	if g.ringing == nil {
		return
	}
	for _, l := range g.ringing.legs {
		l.sip.Bye(sip.Reason{Q850: normalClearing})
		l.closeStream()
		l.free()
	}
	g.ringing.to.close()
}

// surrender gives away who the phone talks to, or calls, and ends this call.
func (c *liveCall) surrender(s surrender) {
	if c.done || c.transfer.running() || len(c.extra) > 0 {
		s.back(gift{})
		return
	}
	switch x := c.other(s.second); {
	case s.second.up() && x.up():
		c.giveAway(x)
		if !s.back(gift{leg: x}) {
			gift{leg: x}.discard()
		}
		x.owner.Store(s.to)
	case x == nil && !s.second.over && c.mayGiveHunt():
		c.giveHunt(s)
	case x == nil && c.visit != nil && c.visit.leg == s.second && c.visit.lead.forOthers():
		s.back(gift{lead: c.visit.lead, dialled: c.new.To})
	default:
		s.back(gift{})
		return
	}
	c.hangUpAll(call.Outcome{Reason: "transfer", HangupBy: "agent"}, normalClearing)
}

// gave writes down that a leg left for another call. What it says from now on goes there.
func (c *liveCall) gave(x *leg) {
	s := x.state()
	s.Status, s.EndedAt, s.EndReason = "ended", c.sw.Now(), "transfer"
	c.given = append(c.given, s)
	c.legs = without(c.legs, x)
}

// giveAway takes a leg out of the call.
func (c *liveCall) giveAway(x *leg) {
	x.loop(nil)
	x.stream.Unbridge()
	x.heldAPI, x.heldPeer, x.apart = false, false, false
	if c.a == x {
		c.a = nil
	}
	if c.b == x {
		c.b = nil
	}
	if r := c.recording; r != nil && r.recorder != nil {
		_ = r.recorder.SetLeft(nil)
		_ = r.recorder.SetRight(nil)
	}
	c.gave(x)
}

// mayGiveHunt reports whether what rings can ring for another call. An emergency call stays with who placed it.
func (c *liveCall) mayGiveHunt() bool {
	return len(c.hunts) == 1 && !c.hunts[0].over && (c.hunts[0].to.exit == nil || !c.hunts[0].to.exit.Emergency)
}

// giveHunt has what rings go on ringing for the other call. The gift is on its way there before the legs' events are.
func (c *liveCall) giveHunt(s surrender) {
	h := c.hunts[0]
	h.timer.Stop()
	c.hunts = nil
	for _, l := range h.legs {
		l.stream.Unbridge()
		c.gave(l)
	}
	g := gift{ringing: h, rings: time.Until(h.until), dialled: c.new.To}
	legs := slices.Clone(h.legs)
	if !s.back(g) {
		g.discard()
	}
	for _, l := range legs {
		l.owner.Store(s.to)
	}
}

// joined completes an attended transfer with who was given.
func (c *liveCall) joined(ctx context.Context, t *transfer, g gift) {
	switch {
	case g.ringing != nil && (c.done || !t.running() || c.transfer != t):
		g.discard()
	case g.ringing != nil:
		c.ringOn(ctx, t, g)
	case g.lead.To != "" && (c.done || !t.running() || c.transfer != t):
	case g.lead.To != "":
		t.state.Mode, t.state.To = "blind", g.dialled
		t.toScript(ctx, reach{lead: g.lead, script: c.sw.script(g.lead)})
	case g.leg == nil:
		t.over("failed", "no such call", 481)
		t.refer.Notify(481, "")
		c.tell(ctx, t)
	case c.done:
		g.leg.owner.Store(c)
		g.discard()
	default:
		c.adopt(g.leg)
		t.target, t.state.To, t.state.TargetLegID = g.leg, g.leg.number, &g.leg.id
		c.complete(ctx, false)
	}
}

// adopt makes a leg of another call one of this one.
func (c *liveCall) adopt(l *leg) {
	l.id, l.dirty, l.started = db.NewID("leg"), true, c.sw.Now()
	l.show()
	l.owner.Store(c)
	c.legs = append(c.legs, l)
}

// ringOn goes on ringing who the phone did not wait for: from here it is a transfer like a blind one.
func (c *liveCall) ringOn(ctx context.Context, t *transfer, g gift) {
	h := g.ringing
	h.c, t.hunt, t.state.Mode, t.state.To = c, h, "blind", g.dialled
	h.onRing, h.onAnswer, h.onFail = t.ringing, t.answered, t.failed
	h.offer = func() media.Media { return offerBeside(t.kept) }
	t.kept.apart, t.from.apart = true, true
	var rings *leg
	for _, l := range h.legs {
		c.adopt(l)
		if !l.rang.IsZero() {
			rings = l
		}
	}
	c.tell(ctx, t)
	if rings != nil {
		t.ringing(rings, sip.Provisional{Status: 180})
	}
	h.await(g.rings)
	c.wire()
}
