package sip

import "strconv"

// Offers of the peer inside a dialog: re-INVITE (RFC 3261 §14.2), also used for UPDATE and PRACK.

// pendingReinvite is an offer of the peer inside the dialog that waits for the switch: a re-INVITE, an UPDATE or a
// PRACK.
type pendingReinvite struct {
	tx           *serverTx
	seq          uint32
	responseHead []byte
	lateOffer    bool
	offer        string // the offer
	grant        sessionGrant
}

// handleReinvite handles a re-INVITE (RFC 3261 §14.2).
func (l *Leg) handleReinvite(m *message) {
	s := l.shard
	grant, tooBrief := l.grantSession(m)
	switch {
	case l.ownOfferPending():
		s.refuseTx(m, 491, "")
		return
	case l.pendingReinvite != nil || l.unacked != nil || l.state != legConfirmed:
		s.refuseTx(m, 500, glareRetryAfter(m))
		return
	case tooBrief:
		s.refuseTx(m, 422, minSEField)
		return
	}
	l.updateTarget(m)
	l.learnAllow(m)
	r := l.emitOffer(m, Reinvite{})
	r.grant = grant
	r.tx.leg = l
	s.buf = appendBody(append(appendStatus(s.buf[:0], 100, ""), r.responseHead...), "", nil)
	r.tx.respond(s, 100, s.buf)
}

// emitOffer hands an offer to the switch.
func (l *Leg) emitOffer(m *message, e Reinvite) *pendingReinvite {
	s := l.shard
	tx := s.newServerTx(m, s.txKey(m, m.method))
	r := &pendingReinvite{tx: tx, seq: m.cseq, responseHead: m.appendHead(nil, ""), lateOffer: m.body == ""}
	if !tx.invite {
		tx.setResponseDeadline(s)
	}
	l.pendingReinvite = r
	if !r.lateOffer {
		e.SDP = []byte(m.body)
		r.offer = m.body
	}
	e.Respond = func(status int, sdp []byte) { l.enqueue(func() { r.respond(l, status, sdp) }) }
	l.emit(e)
	return r
}

// ownOfferPending reports whether our own offer waits for its answer.
func (l *Leg) ownOfferPending() bool { return l.reinviteTx != nil || l.updatePending }

// glareRetryAfter returns the header line of a 500 to an offer that collides with an earlier offer of the same side
// (RFC 3261 §14.2, RFC 3311 §5.2).
func glareRetryAfter(m *message) string {
	return "Retry-After: " + strconv.Itoa(1+int(m.cseq%10)) + "\r\n"
}

// refuseTx refuses an INVITE by a transaction of its own.
func (s *shard) refuseTx(m *message, status int, extra string) {
	tx := s.newServerTx(m, s.txKey(m, "INVITE"))
	s.buf = m.appendResponse(s.buf[:0], status, "", "", extra)
	tx.respond(s, status, s.buf)
}

// respond answers the offer once.
func (r *pendingReinvite) respond(l *Leg, status int, sdp []byte) {
	if l.pendingReinvite != r || status < 200 || status > 699 {
		return
	}
	l.pendingReinvite = nil
	if status == 481 && l.state == legRinging {
		status = 488 // only the offer is refused; the call keeps ringing (RFC 5057 §5.1)
	}
	s := l.shard
	b := append(appendStatus(s.buf[:0], status, ""), r.responseHead...)
	good := status >= 200 && status < 300
	if good {
		b = appendField(b, "Contact", l.contact)
		b = append(b, s.srv.capabilityFields()...)
		b = append(b, r.grant.headerFields()...)
	}
	s.buf = appendBody(b, sdpType, sdp)
	r.tx.respond(s, status, s.buf)
	if !good {
		return
	}
	l.noteLocalSDP(sdp)
	l.notePeerSDP(r.offer)
	l.sessionTimer.startFromGrant(r.grant)
	if r.tx.invite {
		l.awaitAck(&unackedAnswer{seq: r.seq, response: append([]byte(nil), s.buf...), flow: r.tx.flow, lateOffer: r.lateOffer})
	}
}

// updateTarget sets the remote target from the Contact of a request or response (RFC 3261 §12.2.2).
func (l *Leg) updateTarget(m *message) {
	t := contactURI(m)
	if t == "" {
		return
	}
	if e := l.earlyDialog(m.from.tag); e != nil {
		e.path.target = t
		return
	}
	l.route.target = t
}

// notePeerSDP records the peer's last SDP and reports whether it differs from the one before.
func (l *Leg) notePeerSDP(sdp string) (fresh bool) {
	if sdp == "" {
		return false
	}
	digest := hashParts(l.shard.srv.hasher.a, []string{"sdp", sdp}) | 1
	fresh = digest != l.peerSDPHash
	l.peerSDPHash = digest
	return fresh
}

// noteLocalSDP records our last SDP in effect, for refreshing the session.
func (l *Leg) noteLocalSDP(sdp []byte) {
	if len(sdp) > 0 {
		l.localSDP = append([]byte(nil), sdp...)
	}
}
