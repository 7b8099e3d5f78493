package pbx

import (
	"context"
	"strings"

	"soniq/internal/protocol/media"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
)

// Calls placed by API without a user: the destination rings, and a script takes the answered call.

// placeScripted rings the destination and starts the script on answer.
func (s *Switch) placeLed(ctx context.Context, p call.Placement) error {
	lead, refusal, err := s.ledBy(reach{}, Lead{Org: p.Org, To: p.Lead})
	if err != nil {
		return err
	}
	if refusal != nil {
		return refusal.problem()
	}
	kind, _, _ := strings.Cut(p.Lead, ":")
	c, err := s.placed(ctx, p, Destination{Org: p.Org, Sandbox: p.Sandbox, Extension: kind}) // internal phones show the kind of script as the caller
	if err != nil {
		return err
	}
	to, refusal, err := s.people(ctx, c.caller, p.To, "")
	if err == nil && refusal != nil {
		err = refusal.problem()
	}
	if err != nil {
		to.close()
		return err
	}
	if err = s.launch(ctx, c, func(ctx context.Context) { c.ringLed(ctx, p, to, lead) }); err != nil {
		to.close()
	}
	return err
}

// ringForScript rings the destination of a call whose other side is a script.
func (c *liveCall) ringLed(ctx context.Context, p call.Placement, to, lead reach) {
	c.makeWords(p.Announce)
	if to.exit != nil && to.exit.CallerID != "" {
		c.new.From, c.new.NumberID = to.exit.CallerID, to.exit.NumberID
	}
	h := &hunt{c: c, role: "callee", to: to, maxForwards: 70, offer: media.OwnOffer, header: c.headers,
		from: sip.Address{Display: c.new.FromName, URI: sip.URI{User: c.new.From}}}
	h.onRing = func(l *leg, _ sip.Provisional) { c.nowRinging(l) }
	h.onAnswer = func(ctx context.Context, l *leg, _ media.Description) { c.leadCallee(ctx, p, l, lead) }
	h.onFail = func(_ context.Context, e sip.Failed) { c.end(outcomeOf(e.Status, e.Q850)) }
	h.start(ctx, c.ringFor())
}

// runScriptForCallee starts the script for the answering party after the announcement, if any. The call counts as
// answered at once.
func (c *liveCall) leadCallee(ctx context.Context, p call.Placement, l *leg, lead reach) {
	c.b = l
	c.answered = c.sw.Now()
	if c.ringing.IsZero() {
		c.ringing = c.answered
	}
	c.limit(c.maxDuration(), c.timeUp)
	c.sw.stats.answered.Add(1)
	c.agent = l.party()
	if c.words == nil {
		c.visitBy(ctx, lead, l)
	}
	c.wire()
	c.change(ctx, c.answeredEvent(false))
	if c.words != nil {
		c.tellFirst(ctx, l, func(ctx context.Context) {
			if !l.up() {
				return
			}
			c.visitBy(ctx, lead, l)
			c.wire()
			c.change(ctx)
		})
	}
	if p.Machine == "detect" || p.Machine == "hangup" {
		c.detectMachine(l, p.Machine == "hangup")
	}
}
