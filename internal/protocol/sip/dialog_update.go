package sip

import (
	"context"
	"errors"
	"strings"
)

// UPDATE (RFC 3311).

// ErrUpdateNotAllowed is returned if the peer does not allow UPDATE in the present state.
var ErrUpdateNotAllowed = errors.New("sip: the peer does not allow UPDATE")

// Update offers sdp by UPDATE (RFC 3311) and returns the answer. Before the call is answered it is the only way to
// make an offer, and only after the first offer was answered in a reliable provisional response. It fails with
// ErrUpdateNotAllowed if the peer does not allow UPDATE. 491 and refusals are handled as in Reinvite.
func (l *Leg) Update(ctx context.Context, sdp []byte) ([]byte, error) {
	return l.negotiate(ctx, func(done func(*message, error)) { l.sendUpdate(sdp, done) }, nil)
}

func (l *Leg) sendUpdate(sdp []byte, done func(*message, error)) {
	e := l.answeredEarlyDialog()
	switch {
	case l.ended.Load() || l.state != legRinging && l.state != legConfirmed:
		done(nil, ErrLegEnded)
		return
	case !l.peerAllowsUpdate || l.state == legRinging && !l.inbound && e == nil || l.state == legRinging && l.inbound && !l.offerAnswered:
		done(nil, ErrUpdateNotAllowed)
		return
	case l.ownOfferPending() || l.pendingReinvite != nil || l.unacked != nil:
		done(nil, &StatusError{Method: "UPDATE", Status: 491, Reason: reasonPhrase(491)})
		return
	}
	o := requestTemplate{method: "UPDATE", contentType: sdpType, body: sdp, extraFields: l.shard.srv.capabilityFields()}
	if e != nil {
		o.path, o.to = e.path, e.to
	}
	if l.state == legConfirmed {
		o.extraFields += l.sessionTimer.headerFields()
	}
	l.updatePending, l.onOfferAnswered = true, done
	judge := l.resultHandler("UPDATE", done)
	l.sendInDialog(o, func(m *message, status int) {
		if status >= 200 {
			l.updatePending, l.onOfferAnswered = false, nil
		}
		if m != nil && status >= 200 && status < 300 {
			l.updateTarget(m)
			l.noteLocalSDP(sdp)
			l.notePeerSDP(m.body)
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
func (l *Leg) handleUpdate(m *message) {
	s := l.shard
	grant, tooBrief := l.grantSession(m)
	e := l.earlyDialog(m.from.tag)
	switch {
	case l.pendingReinvite != nil:
		s.reply(m, 500, glareRetryAfter(m))
	case tooBrief:
		s.reply(m, 422, minSEField)
	case m.body == "":
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
func (l *Leg) answerRefreshUpdate(m *message, g sessionGrant) {
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
func (l *Leg) learnAllow(m *message) {
	if allow := m.listNamed("Allow"); allow != nil {
		l.peerAllowsUpdate = containsFold(allow, "UPDATE")
	}
}

// hasOptionTag reports whether a field lists an option tag.
func (m *message) hasOptionTag(k fieldName, tag string) bool {
	for i := range m.fields {
		if m.fields[i].kind != k {
			continue
		}
		for rest := m.fields[i].value; rest != ""; {
			var v string
			v, rest = cutElement(rest)
			if strings.EqualFold(v, tag) {
				return true
			}
		}
	}
	return false
}
