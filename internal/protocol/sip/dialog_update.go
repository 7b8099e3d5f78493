package sip

import (
	"context"
	"errors"

	"soniq/internal/protocol/sip/sipmsg"
)

// UPDATE (RFC 3311).

// ErrUpdateNotAllowed is returned if the peer does not allow UPDATE in the present state.
var ErrUpdateNotAllowed = errors.New("sip: the peer does not allow UPDATE")

// Update offers sdp by UPDATE (RFC 3311) and returns the answer. Before the call is answered it is the only way to make an offer. It
// needs a first offer that was answered in a reliable provisional response. It fails with ErrUpdateNotAllowed if the peer does not allow
// UPDATE. 491 and refusals are handled as in Reinvite.
func (l *Leg) Update(ctx context.Context, sdp []byte) ([]byte, error) {
	return l.negotiate(ctx, func(done func(*received, error)) { l.sendUpdate(sdp, done) }, nil)
}

func (l *Leg) sendUpdate(sdp []byte, done func(*received, error)) {
	e := l.answeredEarlyDialog()
	switch {
	case l.ended.Load() || l.state != legRinging && l.state != legConfirmed:
		done(nil, ErrLegEnded)
		return
	case !l.peerAllowsUpdate || l.state == legRinging && !l.inbound && e == nil || l.state == legRinging && l.inbound && !l.offerAnswered:
		done(nil, ErrUpdateNotAllowed)
		return
	case l.ownOfferPending() || l.pendingReinvite != nil || l.unacked != nil:
		done(nil, &StatusError{Method: "UPDATE", Status: 491, Reason: sipmsg.ReasonPhrase(491)})
		return
	}
	o := requestTemplate{method: "UPDATE", contentType: sipmsg.SDPType, body: sdp, extraFields: l.shard.srv.capabilityFields()}
	if e != nil {
		o.path, o.to = e.path, e.to
	}
	if l.state == legConfirmed {
		o.extraFields += l.sessionTimer.headerFields()
	}
	l.updatePending, l.onOfferAnswered = true, done
	judge := l.resultHandler("UPDATE", done)
	l.sendInDialog(o, func(m *received, status int) {
		if status >= 200 {
			l.updatePending, l.onOfferAnswered = false, nil
		}
		if m != nil && status >= 200 && status < 300 {
			l.updateTarget(m)
			l.noteLocalSDP(sdp)
			l.notePeerSDP(m.SDP())
			l.sessionTimer.startFromAnswer(m)
		}
		judge(m, status)
	})
}

// answeredEarlyDialog returns the early dialog of an outgoing call whose offer was answered, or nil.
func (l *Leg) answeredEarlyDialog() *earlyDialog {
	if l.outgoingInvite == nil {
		return nil
	}
	for _, e := range l.outgoingInvite.earlyDialogs {
		if e.offerAnswered {
			return e
		}
	}
	return nil
}

// handleUpdate handles an UPDATE (RFC 3311 §5.2). Without an offer it is answered here: it updates the target and
// refreshes the session.
func (l *Leg) handleUpdate(m *received) {
	s := l.shard
	grant, tooBrief := l.grantSession(m)
	e := l.earlyDialog(m.From.Tag)
	switch {
	case l.pendingReinvite != nil:
		s.reply(m, 500, glareRetryAfter(m))
	case tooBrief:
		s.reply(m, 422, minSEField)
	case m.SDP() == "":
		l.answerRefreshUpdate(m, grant)
	case l.ownOfferPending() || l.unacked != nil && l.unacked.lateOffer || e != nil && !e.offerAnswered:
		s.reply(m, 491, "") // our offer is not answered
	case l.state == legRinging && l.inbound && !l.offerAnswered, l.ackSeq > 0 && l.lastACK == nil:
		s.reply(m, 500, glareRetryAfter(m)) // the peer's offer is not answered
	default:
		l.updateTarget(m)
		l.learnAllow(m)
		early := l.state == legRinging
		r := l.emitOffer(m, Reinvite{Early: early})
		if !early {
			r.grant = grant
		}
	}
}

// answerRefreshUpdate answers an UPDATE without an offer.
func (l *Leg) answerRefreshUpdate(m *received, g sessionGrant) {
	l.updateTarget(m)
	l.learnAllow(m)
	extra := "Contact: " + l.contact + "\r\n" + l.shard.srv.capabilityFields()
	if l.state == legConfirmed || l.state == legAnswered {
		extra += g.headerFields()
		l.sessionTimer.startFromGrant(g)
	}
	l.shard.reply(m, 200, extra)
}

// learnAllow records from Allow whether the peer supports UPDATE.
func (l *Leg) learnAllow(m *received) {
	if allow := m.ListNamed("Allow"); allow != nil {
		l.peerAllowsUpdate = sipmsg.ContainsFold(allow, "UPDATE")
	}
}
