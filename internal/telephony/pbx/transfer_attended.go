package pbx

import (
	"context"
	"slices"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/cause"
)

// replaceRequest asks a call to hand over its remote party, because a phone connects its two calls by attended
// transfer (RFC 3891 Replaces).
type replaceRequest struct {
	second  *leg // the phone's leg in the asked call
	to      *liveCall
	deliver func(handedOverParty) bool // returns false if the other call has ended
}

// handedOverParty is the remote party of a call that is being replaced: an answered leg, a running dial, or a script
// target such as a queue. The zero value means none.
type handedOverParty struct {
	leg       *leg
	ringing   *forkedDial
	handoff   Handoff
	remaining time.Duration // remaining ring time
	dialled   string
}

// discard hangs up a party that was handed over to a call that has ended.
func (g handedOverParty) discard() {
	if g.leg != nil {
		g.leg.sip.Bye(sip.Reason{Q850: cause.NormalClearing})
		g.leg.stream.Close()
	}
	if g.ringing == nil {
		return
	}
	for _, l := range g.ringing.legs {
		l.sip.Bye(sip.Reason{Q850: cause.NormalClearing})
		l.closeStream()
		l.releaseResources()
	}
	g.ringing.to.release()
}

// handOver hands over the party that the phone talks to or dials, and ends this call.
func (c *liveCall) handOver(s replaceRequest) {
	if c.done || c.transfer.running() || len(c.extra) > 0 {
		s.deliver(handedOverParty{})
		return
	}
	switch x := c.other(s.second); {
	case s.second.up() && x.up():
		c.detachLeg(x)
		if !s.deliver(handedOverParty{leg: x}) {
			handedOverParty{leg: x}.discard()
		}
		x.owner.Store(s.to)
	case x == nil && !s.second.over && c.canDetachDial():
		c.detachDial(s)
	case x == nil && c.scripted != nil && c.scripted.leg == s.second && c.scripted.handoff.allowsOthers():
		s.deliver(handedOverParty{handoff: c.scripted.handoff, dialled: c.new.To})
	default:
		s.deliver(handedOverParty{})
		return
	}
	c.hangUpAll(call.Outcome{Reason: "transfer", HangupBy: "agent"}, cause.NormalClearing)
}

// recordDetached records that a leg left for another call. Its later events go there, and its user serves that call. The
// conversation before it counts for no user.
func (c *liveCall) recordDetached(x *leg) {
	s := x.state()
	s.Status, s.EndedAt, s.EndReason = "ended", c.sw.now(), "transfer"
	c.detachedLegs = append(c.detachedLegs, s)
	c.work.Drop(x.id)
	c.legs = without(c.legs, x)
}

// detachLeg removes a leg from the call.
func (c *liveCall) detachLeg(x *leg) {
	x.setLoop(nil)
	x.stream.Unbridge()
	x.heldAPI, x.heldPeer, x.isolated = false, false, false
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
	c.recordDetached(x)
}

// canDetachDial reports whether the running dial can continue for another call. An emergency call stays with its
// caller.
func (c *liveCall) canDetachDial() bool {
	return len(c.dials) == 1 && !c.dials[0].over && (c.dials[0].to.outbound == nil || !c.dials[0].to.outbound.Emergency)
}

// detachDial lets the dial continue for the other call. It delivers the party before the legs' events can arrive
// there.
func (c *liveCall) detachDial(s replaceRequest) {
	h := c.dials[0]
	h.forgetLost()
	h.timer.Stop()
	c.dials = nil
	for _, l := range h.legs {
		l.stream.Unbridge()
		c.recordDetached(l)
	}
	g := handedOverParty{ringing: h, remaining: time.Until(h.until), dialled: c.new.To}
	legs := slices.Clone(h.legs)
	if !s.deliver(g) {
		g.discard()
	}
	for _, l := range legs {
		l.owner.Store(s.to)
	}
}

// joinHandedOver completes an attended transfer with the party that was handed over.
func (c *liveCall) joinHandedOver(ctx context.Context, t *transfer, g handedOverParty) {
	switch {
	case g.ringing != nil && (c.done || !t.running() || c.transfer != t):
		g.discard()
	case g.ringing != nil:
		c.continueDial(ctx, t, g)
	case g.handoff.To != "" && (c.done || !t.running() || c.transfer != t):
	case g.handoff.To != "":
		t.state.Mode, t.state.To = "blind", g.dialled
		t.completeToScript(ctx, resolvedDestination{handoff: g.handoff, script: c.sw.scriptFor(g.handoff)})
	case g.leg == nil:
		t.finish("failed", "no such call", 481)
		t.refer.Notify(481, "")
		c.writeTransfer(ctx, t)
	case c.done:
		g.leg.owner.Store(c)
		g.discard()
	default:
		c.attachLeg(g.leg)
		t.target, t.state.To, t.state.TargetLegID = g.leg, g.leg.number, &g.leg.id
		c.complete(ctx, false)
	}
}

// attachLeg adds a leg of another call to this one. A user who had called the transferor is called from here on.
func (c *liveCall) attachLeg(l *leg) {
	l.id, l.dirty, l.started = db.NewID("leg"), true, c.sw.now()
	if l.role == "caller" && l.caller.UserID != "" {
		l.role = "agent"
	}
	l.publishID()
	l.owner.Store(c)
	c.legs = append(c.legs, l)
}

// continueDial continues a dial whose phone transferred before the answer. From here it is a blind transfer.
func (c *liveCall) continueDial(ctx context.Context, t *transfer, g handedOverParty) {
	h := g.ringing
	h.c, t.dial, t.state.Mode, t.state.To = c, h, "blind", g.dialled
	h.onRing, h.onAnswer, h.onFail = t.ringing, t.answered, t.failed
	h.offer = func() sdp.LocalMedia { return offerBeside(t.transferee) }
	t.transferee.isolated, t.transferor.isolated = true, true
	var rings *leg
	for _, l := range h.legs {
		c.attachLeg(l)
		if !l.rang.IsZero() {
			rings = l
		}
	}
	c.writeTransfer(ctx, t)
	if rings != nil {
		t.ringing(rings, sip.Provisional{Status: 180})
	}
	h.arm(g.remaining)
	c.wireMedia()
}

// completeByCommand completes a consultation.
func (c *liveCall) completeByCommand(ctx context.Context, x call.CompleteTransfer, done commandReply) {
	t := c.transfer
	switch {
	case t.running() && t.state.Status == "consulting":
		c.complete(ctx, x.Conference)
		done.ok()
	case t.consulted() && slices.Contains(c.extra, t.target) == x.Conference: // already in this state
		done.ok()
	default:
		done.state(c, "no consultation is under way")
	}
}

// consulted reports whether the transfer was completed after a consultation.
func (t *transfer) consulted() bool {
	return t != nil && t.state.Status == "completed" && t.state.Mode == "warm" && t.target != nil
}

// cancelByCommand drops the target and returns to the transferee.
func (c *liveCall) cancelByCommand(ctx context.Context, done commandReply) {
	t := c.transfer
	switch {
	case t != nil && t.state.Status == "canceled": // already in this state
		done.ok()
		return
	case !t.running():
		done.state(c, "no transfer is under way")
		return
	case !t.transferor.up():
		done.state(c, "there is nobody to go back to")
		return
	}
	c.giveUp(ctx, t, "canceled")
	done.ok()
}
