package pbx

import (
	"context"
	"regexp"
	"strings"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/telephony/call"
)

// refer handles a REFER (RFC 3515): a blind transfer, or an attended transfer if it names another dialog of the phone
// with Replaces (RFC 3891).
func (c *liveCall) refer(l *leg, e sip.Refer) {
	kept := c.other(l)
	switch {
	case l.caller.UserID == "":
		c.referByPeer(l, e)
	case !c.transferable(l):
		e.Respond(491)
	case e.RawReplaces != "":
		c.attendedTransfer(l, kept, e)
	default:
		c.blindTransfer(l, kept, e, nil)
	}
}

// transferable reports whether a leg can transfer the other side now.
func (c *liveCall) transferable(l *leg) bool {
	return l.up() && c.other(l).up() && !c.transfer.running() && len(c.extra) == 0
}

// referByPeer handles a REFER from a trunk: a blind transfer, if the trunk allows it. It may dial numbers at the
// expense of the organisation, so that carriers may not send it.
func (c *liveCall) referByPeer(l *leg, e sip.Refer) {
	if l.trunkID == "" || e.RawReplaces != "" || c.isEmergency() || !c.sw.isNumberHere(e.Target) {
		e.Respond(403)
		return
	}
	org := c.orgNow()
	c.runAsync(routeTimeout, func(ctx context.Context) func(context.Context) {
		t, err := c.sw.cfg.Identity.TrunkIn(ctx, org, l.trunkID)
		return func(context.Context) {
			switch {
			case err != nil || !t.AllowRefer:
				e.Respond(403)
			case !c.transferable(l):
				e.Respond(491)
			default:
				if l.in != nil {
					t.Source = l.in.Source.Addr()
				}
				c.blindTransfer(l, c.other(l), e, &t)
			}
		}
	})
}

// peerTarget matches what a peer may transfer to: an extension, or a number with or without a plus.
var peerTarget = regexp.MustCompile(`^\+?[0-9]{1,20}$`)

// isNumberHere reports whether a URI is a number to be dialled by this server.
func (s *Switch) isNumberHere(u sipmsg.URI) bool {
	return (u.Scheme == "tel" || s.server.IsLocalURI(u)) && peerTarget.MatchString(dialled(u))
}

// resolveForPeer resolves the target of a peer's transfer. A number that the peer may call over its trunk is called
// without leaving. Other targets are those of a program: extensions, and outside numbers within the outbound limits.
func (s *Switch) resolveForPeer(ctx context.Context, t TrunkIn, from Caller, to string) (resolvedDestination, *Refusal, error) {
	d, ok, err := s.cfg.Routes.Number(ctx, t, to)
	switch {
	case err != nil:
		return resolvedDestination{}, nil, err
	case !ok || d.Org != from.Org:
		return s.resolveDestination(ctx, from, to)
	case d.Barred:
		return resolvedDestination{}, &Refusal{Status: 480, Phrase: "", Reason: "blocked"}, nil
	}
	return s.resolveEntry(ctx, d)
}

// blindTransfer connects the other side with the target of a REFER. peer is the trunk that it came from, or nil.
func (c *liveCall) blindTransfer(l, kept *leg, e sip.Refer, peer *TrunkIn) {
	to := dialled(e.Target)
	if to == "" {
		e.Respond(400)
		return
	}
	e.Respond(202)
	t := &transfer{c: c, transferee: kept, transferor: l, refer: &e, trunk: peer,
		state: call.TransferState{Mode: "blind", To: to, Status: "started", StartedAt: c.sw.now()}}
	c.resolveTransfer(t, "", to, 0)
}

// attendedTransfer connects the transferee with the other party of the phone's second call.
func (c *liveCall) attendedTransfer(l, kept *leg, e sip.Refer) {
	second := c.sw.legFor(e.Replaces)
	if second == nil || second.caller.UserID != l.caller.UserID || second.caller.Org != l.caller.Org {
		e.Respond(481)
		return
	}
	other := second.owner.Load()
	if other == c {
		e.Respond(400)
		return
	}
	e.Respond(202)
	t := &transfer{c: c, transferee: kept, transferor: l, refer: &e, state: call.TransferState{Mode: "warm", Status: "started",
		StartedAt: c.sw.now()}}
	c.transfer = t
	give := replaceRequest{second: second, to: c, deliver: func(x handedOverParty) bool {
		return c.inbox.Push(message{run: func(ctx context.Context) { c.joinHandedOver(ctx, t, x) }, ifEnded: x.discard})
	}}
	if !other.inbox.Push(message{run: func(context.Context) { other.handOver(give) },
		ifEnded: func() { give.deliver(handedOverParty{}) }}) {
		give.deliver(handedOverParty{})
	}
}

// legFor returns the leg of a SIP dialog; nil if there is none.
func (s *Switch) legFor(d *sip.Leg) *leg {
	if d == nil {
		return nil
	}
	l, ok := s.dialogs.Load(d)
	if !ok {
		return nil
	}
	return l.(*leg)
}

// handleReplaces handles an INVITE with Replaces (RFC 3891), which takes the place of a leg of a call in progress.
// The dialog's tags can only come from the phone. The caller has to be of the same organisation.
func (s *Switch) handleReplaces(ctx context.Context, in *sip.Inbound) bool {
	if in.Replaces == nil {
		return false
	}
	old := s.legFor(in.Replaces)
	caller, err := s.cfg.Identity.Caller(ctx, in.Account)
	if old == nil || err != nil || strings.Contains(in.Account, "/") {
		in.Listen(func(sip.Event) {})
		in.Reject(481, "", 0)
		return true
	}
	c := old.owner.Load()
	refuse := func(status int) {
		in.Listen(func(sip.Event) {})
		in.Reject(status, "", 0)
	}
	if c.orgNow() != caller.Org {
		refuse(481)
		return true
	}
	if !c.inbox.Push(message{run: func(ctx context.Context) { c.replaceByInvite(ctx, old, in, caller, refuse) },
		ifEnded: func() { refuse(603) }}) {
		refuse(603) // RFC 3891 §3: the dialog has ended
	}
	return true
}

// replaceByInvite connects the new leg in the place of the old one.
func (c *liveCall) replaceByInvite(ctx context.Context, old *leg, in *sip.Inbound, caller Caller, refuse func(int)) {
	kept := c.other(old)
	if !old.up() || !kept.up() || c.transfer.running() || old.owner.Load() != c {
		refuse(481)
		return
	}
	role := "agent"
	if caller.UserID == old.caller.UserID { // the user continues on another phone
		role = old.role
	}
	l := c.newLeg(role)
	l.in, l.sip, l.caller, l.number = in, in.Leg(), caller, caller.Extension
	if refusal := c.openReplacement(l, kept); refusal != nil {
		l.over = true
		refuse(refusal.Status)
		return
	}
	in.Listen(l.deliver)
	c.nameCall(in)
	c.sw.indexLeg(l)
	l.answered = c.sw.now()
	t := &transfer{c: c, transferee: kept, transferor: old, target: l, state: call.TransferState{Mode: "blind", To: l.number,
		Status: "started", TargetLegID: &l.id, StartedAt: c.sw.now()}}
	c.transfer = t
	c.complete(ctx, false)
	if err := in.Answer(l.localAnswer); err != nil {
		c.sw.cfg.Log.Debug("answer came too late", "call", c.id, "err", err)
	}
}

// openReplacement opens the media of the new leg and creates its SDP answer.
func (c *liveCall) openReplacement(l, kept *leg) *Refusal {
	var err error
	if l.stream, err = c.openStream(kept, l.via()); err != nil {
		return &Refusal{Status: 503}
	}
	l.session = l.stream.NewSession(profileOf(l.in.Transport, l.caller.SRTP))
	if l.in.Offer == nil {
		return &Refusal{Status: 488}
	}
	if l.offer, err = l.session.ReceiveOffer(l.in.Offer); err != nil {
		return refusalOf(err)
	}
	m, err := c.answerFor(l, l.offer)
	if err == nil {
		l.localAnswer, err = l.session.Answer(m)
	}
	if err != nil {
		return refusalOf(err)
	}
	l.apply()
	return nil
}
