package sip

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"soniq/internal/protocol/sip/sipmsg"
)

// Offers inside a dialog: re-INVITE of the peer (RFC 3261 §14.2), also used for UPDATE and PRACK; ours, and the ACK of a
// late offer (§14.1).

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
func (l *Leg) handleReinvite(m *received) {
	s := l.shard
	grant, tooBrief := l.grantSession(m)
	switch {
	case l.ownOfferPending(), l.unacked != nil && l.pendingReinvite == nil: // RFC 5407 §3.1.4: before the ACK of our 2xx
		s.refuseTx(m, 491, "")
		return
	case l.pendingReinvite != nil || l.state != legConfirmed:
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
	s.buf = sipmsg.AppendBody(append(sipmsg.AppendStatus(s.buf[:0], 100, ""), r.responseHead...), "", nil)
	r.tx.respond(s, 100, s.buf)
}

// emitOffer hands an offer to the switch.
func (l *Leg) emitOffer(m *received, e Reinvite) *pendingReinvite {
	s := l.shard
	tx := s.newServerTx(m, s.txKey(m, m.Method))
	r := &pendingReinvite{tx: tx, seq: m.CSeq, responseHead: m.AppendHead(nil, ""), offer: m.SDP()}
	r.lateOffer = r.offer == ""
	if !tx.invite {
		tx.setResponseDeadline(s)
	}
	l.pendingReinvite = r
	if !r.lateOffer {
		e.SDP = []byte(r.offer)
	}
	e.respond = func(status int, sdp []byte, warning ...string) {
		l.enqueue(func() { r.respond(l, status, sdp, warning...) })
	}
	l.emit(e)
	return r
}

// ownOfferPending reports whether our own offer waits for its answer.
func (l *Leg) ownOfferPending() bool { return l.reinviteTx != nil || l.updatePending }

// glareRetryAfter returns the header line of a 500 to an offer that collides with an earlier one of the same side (RFC 3261 §14.2, RFC
// 3311 §5.2).
func glareRetryAfter(m *received) string {
	return "Retry-After: " + strconv.Itoa(1+int(m.CSeq%10)) + "\r\n"
}

// refuseTx refuses an INVITE by a transaction of its own.
func (s *shard) refuseTx(m *received, status int, extra string) {
	tx := s.newServerTx(m, s.txKey(m, "INVITE"))
	s.buf = m.AppendResponse(s.buf[:0], status, "", "", extra)
	tx.respond(s, status, s.buf)
}

// respond answers the offer once.
func (r *pendingReinvite) respond(l *Leg, status int, sdp []byte, warning ...string) {
	if l.pendingReinvite != r || status < 200 || status > 699 {
		return
	}
	l.pendingReinvite = nil
	if status == 481 && l.state == legRinging {
		status = 488 // only the offer is refused; the call keeps ringing (RFC 5057 §5.1)
	}
	s := l.shard
	b := append(sipmsg.AppendStatus(s.buf[:0], status, ""), r.responseHead...)
	good := status >= 200 && status < 300
	if good {
		b = sipmsg.AppendField(b, "Contact", l.contact)
		b = append(b, s.srv.capabilityFields()...)
		b = append(b, r.grant.headerFields()...)
	} else if len(warning) > 0 {
		b = append(b, sipmsg.WarningField(warning[0])...)
	}
	s.buf = sipmsg.AppendBody(b, sipmsg.SDPType, sdp)
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
func (l *Leg) updateTarget(m *received) {
	t := contactURI(&m.Message)
	if t == "" {
		return
	}
	if e := l.earlyDialog(m.From.Tag); e != nil {
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

// Reinvite offers sdp by re-INVITE and returns the answer; the ACK has been sent. With nil sdp it returns the peer's
// offer, and Ack must follow.
//
// 491 is retried after the delay of RFC 3261 §14.1 until ctx ends. If ctx ends first, the re-INVITE is canceled, and
// a 2xx that arrives all the same is reported as LateReinviteAnswer. Other refusals are a *StatusError and leave the
// session unchanged.
func (l *Leg) Reinvite(ctx context.Context, sdp []byte) ([]byte, error) {
	return l.negotiate(ctx, func(done func(*received, error)) { l.sendReinvite(sdp, done) }, l.withdrawReinvite)
}

// negotiate repeats an offer until it does not collide with an offer of the peer (491).
func (l *Leg) negotiate(ctx context.Context, offer func(done func(*received, error)), withdraw func()) ([]byte, error) {
	for {
		body, err := l.runAndWaitUntil(ctx, offer, withdraw)
		if ctx.Err() != nil && err != nil {
			return nil, err
		}
		if e, ok := err.(*StatusError); !ok || e.Status != 491 {
			return body, err
		}
		if err := sleepContext(ctx, l.glarePause()); err != nil {
			return nil, err
		}
	}
}

// glarePause returns the delay after a 491. The side that created the Call-ID waits longer (RFC 3261 §14.1).
func (l *Leg) glarePause() time.Duration {
	if l.inbound {
		return rand.N(2 * time.Second)
	}
	return 2100*time.Millisecond + rand.N(1900*time.Millisecond)
}

func sleepContext(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Leg) sendReinvite(sdp []byte, done func(*received, error)) {
	switch {
	case l.state != legConfirmed:
		done(nil, ErrLegEnded)
		return
	case l.ownOfferPending() && !l.sessionTimer.refreshPending:
		done(nil, ErrOfferPending)
		return
	case l.pendingReinvite != nil || l.unacked != nil ||
		l.sessionTimer.refreshPending: // the peer's offer is first: act as if ours had been refused
		done(nil, &StatusError{Method: "INVITE", Status: 491, Reason: sipmsg.ReasonPhrase(491)})
		return
	}
	extra := l.shard.srv.capabilityFields() + l.sessionTimer.headerFields()
	o := requestTemplate{method: "INVITE", contentType: sipmsg.SDPType, body: sdp, extraFields: extra}
	l.onOfferAnswered = done
	judge := l.resultHandler("INVITE", done)
	l.reinviteTx = l.sendInDialog(o, func(m *received, status int) {
		belated := l.reinviteWithdrawn
		switch {
		case status >= 200:
			l.reinviteTx, l.onOfferAnswered, l.reinviteWithdrawn = nil, nil, false
		case belated: // RFC 3261 §9.1: no CANCEL before a provisional response
			l.cancelReinvite()
		}
		if m != nil && status >= 200 && status < 300 {
			l.handleReinviteAnswer(m, sdp == nil)
			l.noteLocalSDP(sdp)
			l.notePeerSDP(m.SDP())
			l.learnAllow(m)
			l.sessionTimer.startFromAnswer(m)
			if belated {
				l.emit(LateReinviteAnswer{})
			}
		}
		judge(m, status)
	})
}

// withdrawReinvite cancels our re-INVITE because its caller no longer waits for the answer.
func (l *Leg) withdrawReinvite() {
	l.reinviteWithdrawn = l.reinviteTx != nil
	l.cancelReinvite()
}

// handleReinviteAnswer handles the 2xx of our re-INVITE. The remote target may have changed.
func (l *Leg) handleReinviteAnswer(m *received, late bool) {
	if t := contactURI(&m.Message); t != "" {
		l.route.target = t
	}
	l.ackSeq = m.CSeq
	if !late {
		l.sendAck(m.CSeq, nil)
		return
	}
	l.lastACK = nil
}

func (l *Leg) cancelReinvite() {
	if tx := l.reinviteTx; tx != nil && tx.gotProvisional {
		l.shard.cancelInviteTx(tx, "")
		l.limitPendingReinvite()
	}
}

// Ack sends the ACK of a late offer with our answer.
func (l *Leg) Ack(sdp []byte) {
	l.enqueue(func() {
		if l.state == legAnswered && !l.inbound {
			l.state = legConfirmed
		}
		if l.state == legConfirmed && l.lastACK == nil {
			l.sendAck(l.ackSeq, sdp)
			l.noteLocalSDP(sdp)
		}
	})
}
