package pbx

import (
	"context"
	"net/netip"

	"soniq/call"
	"soniq/media"
	"soniq/sip"
)

// openMedia opens a stream for either side and reads the caller's offer.
func (c *liveCall) openMedia() *Refusal {
	a, err := c.sw.Media.Open()
	if err != nil {
		return &Refusal{Status: 503, Phrase: "No media ports", Reason: "carrier_error"}
	}
	c.streamA = a
	if c.streamB, err = c.sw.Media.OpenBeside(a); err != nil {
		return &Refusal{Status: 503, Phrase: "No media ports", Reason: "carrier_error"}
	}
	c.a.session = media.NewSession(a.Local())
	if c.in.Offer == nil { // RFC 3261 §13.2.1: a late offer; ours goes out in the 200
		return nil
	}
	c.offer, err = c.a.session.ReceiveOffer(c.in.Offer)
	if err != nil {
		return refusalOf(err)
	}
	return nil
}

func refusalOf(err error) *Refusal {
	r := &Refusal{Status: 488, Phrase: "Not Acceptable Here", Reason: "carrier_error"}
	if e, ok := err.(*media.SDPError); ok {
		r.Status, r.Phrase = e.Status, e.Reason
	}
	return r
}

// toCallee is what the other side is offered: what the caller offered, or our own list for a late offer.
func (c *liveCall) toCallee() media.Media {
	if c.in.Offer == nil {
		return media.OwnOffer()
	}
	return media.OfferBeside(c.offer)
}

// ringOut rings every phone of the user, or tries the first trunk.
func (c *liveCall) ringOut(ctx context.Context) {
	if c.plan.exit != nil {
		c.tryTrunk(ctx)
		return
	}
	for i := range c.plan.phones {
		c.ringPhone(ctx, &c.plan.phones[i])
	}
	c.nobodyLeft(ctx)
}

func (c *liveCall) ringPhone(ctx context.Context, p *Phone) {
	l := &leg{role: "callee", phone: p, session: media.NewSession(c.streamB.Local())}
	o := c.outgoing(l)
	o.Binding = &p.Binding
	o.From.URI = sip.URI{User: c.plan.new.From}
	o.To.URI = sip.URI{User: c.plan.user.Extension}
	c.invite(ctx, l, o)
}

func (c *liveCall) outgoing(l *leg) sip.Outgoing {
	o := sip.Outgoing{SDP: l.session.Offer(c.toCallee()), MaxForwards: max(c.in.MaxForwards-1, 1)}
	o.From.Display = c.plan.new.FromName
	if c.plan.new.From == call.Anonymous {
		o.From.Display, o.Anonymous = "Anonymous", true
	}
	return o
}

// invite sends the INVITE; a leg that cannot be tried counts as failed.
func (c *liveCall) invite(ctx context.Context, l *leg, o sip.Outgoing) {
	c.offered++
	dialog, err := c.sw.server.Invite(ctx, o, func(e sip.Event) { c.inbox.push(message{leg: l, event: e}) })
	if err != nil {
		c.sw.Log.Warn("leg not invited", "call", c.id, "err", err)
		c.keepWorst(sip.Failed{Status: 503})
		l.free()
		return
	}
	l.sip = dialog
	c.ring = append(c.ring, l)
}

// tryTrunk calls through the next trunk that has a channel free.
func (c *liveCall) tryTrunk(ctx context.Context) {
	for c.next < len(c.plan.exit.Trunks) {
		t := &c.plan.exit.Trunks[c.next]
		c.next++
		l := &leg{role: "callee", trunk: t, session: media.NewSession(c.streamB.Local())}
		if t.Acquire != nil {
			release, ok := t.Acquire(func() { c.inbox.push(message{event: preempted{}}) })
			if !ok {
				c.keepWorst(sip.Failed{Status: 503})
				continue
			}
			l.release = release
		}
		c.invite(ctx, l, c.trunkInvite(l))
		if len(c.ring) > 0 {
			c.tellPlaced(ctx)
			return
		}
	}
	c.nobodyLeft(ctx)
}

// tellPlaced has it written down that an emergency call is on its way.
func (c *liveCall) tellPlaced(ctx context.Context) {
	if placed := c.plan.exit.Placed; placed != nil {
		c.ledger.write(ctx, "emergency call", func(ctx context.Context) error { return placed(ctx, c.id) })
	}
}

// trunkInvite shows the caller's number the way the trunk wants it.
func (c *liveCall) trunkInvite(l *leg) sip.Outgoing {
	t := l.trunk
	o := c.outgoing(l)
	o.URI = "sip:" + t.Number + "@" + t.Target.Host
	o.NextHop, o.Credentials, o.Location = t.Target, t.Credentials, c.plan.exit.Location
	shownAs := sip.Address{Display: o.From.Display, URI: sip.URI{User: c.plan.new.From, Host: t.Domain}}
	o.From, o.To = shownAs, sip.Address{URI: sip.URI{User: t.Number}}
	switch t.Mode {
	case "pai":
		o.Identity = shownAs
	case "rpid":
		o.RemoteParty = shownAs
	}
	return o
}

// progress passes ringing on, and early media where only one side can be meant.
func (c *liveCall) progress(l *leg, e sip.Provisional) {
	if c.b != nil || c.done {
		return
	}
	if c.ringing.IsZero() {
		c.ringing = c.sw.Now()
	}
	alone := len(c.ring) == 1 && c.in.Offer != nil
	if len(e.SDP) == 0 || !alone {
		c.in.Ring(180, nil)
		return
	}
	if c.toCaller == nil && !c.early(l, e.SDP) {
		c.in.Ring(180, nil)
		return
	}
	c.in.Ring(e.Status, c.toCaller)
}

// early connects the media before the answer, so that the caller hears what the other side plays. The leg's own
// session stays open for the answer in the 200, which may differ.
func (c *liveCall) early(l *leg, sdp []byte) bool {
	preview := *l.session
	answer, err := preview.ReceiveAnswer(sdp)
	if err != nil {
		return false
	}
	if err := c.answerCaller(answer); err != nil {
		return false
	}
	c.streamB.Apply(&preview, c.via(l))
	media.Bridge(c.streamA, c.streamB)
	return true
}

// answerCaller fixes our answer to the caller's offer.
func (c *liveCall) answerCaller(answer media.Description) error {
	m, err := media.AnswerBeside(c.offer, answer)
	if err != nil {
		return err
	}
	if c.toCaller, err = c.a.session.Answer(m); err != nil {
		return err
	}
	c.streamA.Apply(c.a.session, c.in.Source.Addr())
	return nil
}

// via is the address a leg's signalling comes from, which its media may come from too.
func (c *liveCall) via(l *leg) netip.Addr {
	if l.phone != nil {
		return l.phone.Binding.Source.Addr()
	}
	return netip.Addr{}
}

// failed is the end of one attempt: the next trunk, the other phones, or the end of the call.
func (c *liveCall) failed(ctx context.Context, l *leg, e sip.Failed) {
	l.over = true
	l.free()
	if c.b != nil || c.done {
		return
	}
	c.drop(l)
	c.keepWorst(e)
	if e.Status >= 600 { // RFC 3261 §16.7 step 5: a global refusal ends every branch
		c.hangUpLegs(sip.Reason{})
		c.ring = nil
	}
	if len(c.ring) == 0 && c.plan.exit != nil && retryable(e.Status) {
		c.tryTrunk(ctx)
		return
	}
	c.nobodyLeft(ctx)
}

func (c *liveCall) drop(l *leg) {
	for i, x := range c.ring {
		if x == l {
			c.ring = append(c.ring[:i:i], c.ring[i+1:]...)
			return
		}
	}
}

func (c *liveCall) keepWorst(e sip.Failed) {
	if c.worst == nil || rank(e.Status) < rank(c.worst.Status) {
		c.worst = &e
	}
}

// nobodyLeft refuses the caller when nothing rings any more.
func (c *liveCall) nobodyLeft(ctx context.Context) {
	if len(c.ring) > 0 || c.b != nil || c.done {
		return
	}
	e := sip.Failed{Status: 480}
	if c.worst != nil {
		e = *c.worst
	}
	if !c.began && !c.begin(ctx) {
		c.reject(503, "Service Unavailable", call.Outcome{})
		return
	}
	c.reject(shown(e.Status), "", outcomeOf(e.Status, e.Q850))
}

// free gives the trunk's channel back, once.
func (l *leg) free() {
	if l.release != nil {
		l.release()
		l.release = nil
	}
}
