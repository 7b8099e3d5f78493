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

// replaceRequest asks a call to hand over its remote party, because a phone connects its two calls by attended
// transfer (RFC 3891 Replaces).
type surrender struct {
	second *leg // the phone's leg in the asked call
	to     *liveCall
	back   func(gift) bool // returns false if the other call has ended
}

// handedOverParty is the remote party of a call that is being replaced: an answered leg, a running dial, or a script
// target such as a queue. The zero value means none.
type gift struct {
	leg     *leg
	ringing *hunt
	lead    Lead
	rings   time.Duration // remaining ring time
	dialled string
}

// discard hangs up a party that was handed over to a call that has ended.
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

// handOver hands over the party that the phone talks to or dials, and ends this call.
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

// recordDetached records that a leg left for another call. Its later events go there.
func (c *liveCall) gave(x *leg) {
	s := x.state()
	s.Status, s.EndedAt, s.EndReason = "ended", c.sw.Now(), "transfer"
	c.given = append(c.given, s)
	c.legs = without(c.legs, x)
}

// detachLeg removes a leg from the call.
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

// canDetachDial reports whether the running dial can continue for another call. An emergency call stays with its
// caller.
func (c *liveCall) mayGiveHunt() bool {
	return len(c.hunts) == 1 && !c.hunts[0].over && (c.hunts[0].to.exit == nil || !c.hunts[0].to.exit.Emergency)
}

// detachDial lets the dial continue for the other call. It delivers the party before the legs' events can arrive
// there.
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

// joinHandedOver completes an attended transfer with the party that was handed over.
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

// attachLeg adds a leg of another call to this one.
func (c *liveCall) adopt(l *leg) {
	l.id, l.dirty, l.started = db.NewID("leg"), true, c.sw.Now()
	l.show()
	l.owner.Store(c)
	c.legs = append(c.legs, l)
}

// continueDial continues a dial whose phone transferred before the answer. From here it is a blind transfer.
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
