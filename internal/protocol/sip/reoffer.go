package sip

import "strconv"

// Offers of the peer inside a dialog: re-INVITE (RFC 3261 §14.2), also used for UPDATE and PRACK.

// pendingReinvite is an offer of the peer inside the dialog that waits for the switch: a re-INVITE, an UPDATE or a
// PRACK.
type reoffer struct {
	tx    *serverTx
	seq   uint32
	head  []byte
	late  bool
	heard string // the offer
	grant grant
}

// handleReinvite handles a re-INVITE (RFC 3261 §14.2).
func (l *Leg) reoffered(m *message) {
	s := l.shard
	grant, tooBrief := l.grant(m)
	switch {
	case l.offering():
		s.refuseTx(m, 491, "")
		return
	case l.offered != nil || l.unacked != nil || l.state != legConfirmed:
		s.refuseTx(m, 500, retryLater(m))
		return
	case tooBrief:
		s.refuseTx(m, 422, minSE)
		return
	}
	l.retarget(m)
	l.learn(m)
	r := l.offer(m, Reinvite{})
	r.grant = grant
	r.tx.leg = l
	s.buf = appendBody(append(appendStatus(s.buf[:0], 100, ""), r.head...), "", nil)
	r.tx.respond(s, 100, s.buf)
}

// emitOffer hands an offer to the switch.
func (l *Leg) offer(m *message, e Reinvite) *reoffer {
	s := l.shard
	tx := s.serve(m, s.txKey(m, m.method))
	r := &reoffer{tx: tx, seq: m.cseq, head: m.appendHead(nil, ""), late: m.body == ""}
	if !tx.invite {
		tx.limit(s)
	}
	l.offered = r
	if !r.late {
		e.SDP = []byte(m.body)
		r.heard = m.body
	}
	e.Respond = func(status int, sdp []byte) { l.post(func() { r.respond(l, status, sdp) }) }
	l.emit(e)
	return r
}

// ownOfferPending reports whether our own offer waits for its answer.
func (l *Leg) offering() bool { return l.reinvite != nil || l.updating }

// glareRetryAfter returns the header line of a 500 to an offer that collides with an earlier offer of the same side
// (RFC 3261 §14.2, RFC 3311 §5.2).
func retryLater(m *message) string { return "Retry-After: " + strconv.Itoa(1+int(m.cseq%10)) + "\r\n" }

// refuseTx refuses an INVITE by a transaction of its own.
func (s *shard) refuseTx(m *message, status int, extra string) {
	tx := s.serve(m, s.txKey(m, "INVITE"))
	s.buf = m.appendResponse(s.buf[:0], status, "", "", extra)
	tx.respond(s, status, s.buf)
}

// respond answers the offer once.
func (r *reoffer) respond(l *Leg, status int, sdp []byte) {
	if l.offered != r || status < 200 || status > 699 {
		return
	}
	l.offered = nil
	if status == 481 && l.state == legRinging {
		status = 488 // only the offer is refused; the call keeps ringing (RFC 5057 §5.1)
	}
	s := l.shard
	b := append(appendStatus(s.buf[:0], status, ""), r.head...)
	good := status >= 200 && status < 300
	if good {
		b = appendField(b, "Contact", l.contact)
		b = append(b, s.srv.able()...)
		b = append(b, r.grant.fields()...)
	}
	s.buf = appendBody(b, sdpType, sdp)
	r.tx.respond(s, status, s.buf)
	if !good {
		return
	}
	l.say(sdp)
	l.hear(r.heard)
	l.session.begin(r.grant)
	if r.tx.invite {
		l.awaitAck(&unacked{seq: r.seq, response: append([]byte(nil), s.buf...), flow: r.tx.flow, late: r.late})
	}
}

// updateTarget sets the remote target from the Contact of a request or response (RFC 3261 §12.2.2).
func (l *Leg) retarget(m *message) {
	t := contactURI(m)
	if t == "" {
		return
	}
	if e := l.early(m.from.tag); e != nil {
		e.path.target = t
		return
	}
	l.path.target = t
}

// notePeerSDP records the peer's last SDP and reports whether it differs from the one before.
func (l *Leg) hear(sdp string) (fresh bool) {
	if sdp == "" {
		return false
	}
	digest := hashParts(l.shard.srv.keys.a, []string{"sdp", sdp}) | 1
	fresh = digest != l.heard
	l.heard = digest
	return fresh
}

// noteLocalSDP records our last SDP in effect, for refreshing the session.
func (l *Leg) say(sdp []byte) {
	if len(sdp) > 0 {
		l.sdp = append([]byte(nil), sdp...)
	}
}
