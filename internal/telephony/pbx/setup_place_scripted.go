package pbx

import (
	"context"

	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx/cause"
)

// Calls placed by API without a user: the destination rings, and a script takes the answered call.

// placeScripted rings the destination and starts the script on answer.
func (s *Switch) placeScripted(ctx context.Context, p call.Placement) error {
	lead, refusal, err := s.routeToScript(resolvedDestination{}, Handoff{Org: p.Org, To: p.ScriptTarget})
	if err != nil {
		return err
	}
	if refusal != nil {
		return refusal.problem()
	}
	c, err := s.newPlacedCall(ctx, p, Destination{Org: p.Org, Sandbox: p.Sandbox})
	if err != nil {
		return err
	}
	to, refusal, err := s.resolveDirect(ctx, c.caller, p.To, "")
	if err == nil && refusal != nil {
		err = refusal.problem()
	}
	if err == nil {
		err = c.showNumber(ctx, to)
	}
	if err != nil {
		to.release()
		return err
	}
	if err = s.startPlaced(ctx, c, func(ctx context.Context) { c.ringForScript(ctx, p, to, lead) }); err != nil {
		to.release()
	}
	return err
}

// showNumber sets the number that a call without a user shows: as the route has it, else the organisation's.
func (c *liveCall) showNumber(ctx context.Context, to resolvedDestination) (err error) {
	if to.outbound != nil {
		c.new.From, c.new.NumberID = to.outbound.CallerID, to.outbound.NumberID
	}
	if c.new.From == "" {
		c.new.From, c.new.NumberID, err = c.sw.cfg.Outbound.ShownNumber(ctx, c.caller)
	}
	if c.new.From == "" {
		c.new.From = call.Anonymous
	}
	return err
}

// ringForScript rings the destination of a call whose other side is a script.
func (c *liveCall) ringForScript(ctx context.Context, p call.Placement, to, lead resolvedDestination) {
	c.prepareAnnouncement(p.Announce)
	h := &forkedDial{c: c, role: "callee", to: to, maxForwards: 70, offer: sdp.LocalOffer, header: c.headers,
		from: sipmsg.Address{Display: c.new.FromName, URI: sipmsg.URI{User: c.new.From}}}
	h.onRing = func(l *leg, _ sip.Provisional) { c.firstRinging(l) }
	h.onAnswer = func(ctx context.Context, l *leg, _ sdp.Description) { c.runScriptForCallee(ctx, p, l, lead) }
	h.onFail = func(_ context.Context, e sip.Failed) { c.end(cause.Outcome(e.Status, e.Q850)) }
	h.start(ctx, c.callRingTimeout())
}

// runScriptForCallee starts the script for the answering party after the announcement, if any. The call counts as
// answered at once.
func (c *liveCall) runScriptForCallee(ctx context.Context, p call.Placement, l *leg, lead resolvedDestination) {
	c.b = l
	c.answered = c.sw.now()
	if c.ringing.IsZero() {
		c.ringing = c.answered
	}
	c.afterWhileActive(c.maxDuration(), c.maxDurationReached)
	c.sw.stats.answered.Add(1)
	c.agent = l.party()
	if c.announcement == nil {
		c.runScript(ctx, lead, l)
	}
	c.wireMedia()
	c.change(ctx, c.answeredEvent(false))
	if c.announcement != nil {
		c.playBeforeConnect(ctx, l, func(ctx context.Context) {
			if !l.up() {
				return
			}
			c.runScript(ctx, lead, l)
			c.wireMedia()
			c.change(ctx)
		})
	}
	if p.Machine == "detect" || p.Machine == "hangup" {
		c.detectMachine(l, p.Machine == "hangup")
	}
}
