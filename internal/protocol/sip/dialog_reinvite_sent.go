package sip

import (
	"context"
	"math/rand/v2"
	"time"
)

// Re-INVITE sent by this side, and the ACK of a late offer (RFC 3261 §14.1).

// Reinvite offers sdp by re-INVITE and returns the answer; the ACK has been sent. With nil sdp it returns the peer's
// offer, and Ack must follow.
//
// 491 is retried after the delay of RFC 3261 §14.1 until ctx ends. If ctx ends first, the re-INVITE is canceled, and
// a 2xx that arrives all the same is reported as LateReinviteAnswer. Other refusals are a *StatusError and leave the
// session unchanged.
func (l *Leg) Reinvite(ctx context.Context, sdp []byte) ([]byte, error) {
	return l.negotiate(ctx, func(done func(*message, error)) { l.sendReinvite(sdp, done) }, l.withdrawReinvite)
}

// negotiate repeats an offer until it does not collide with an offer of the peer (491).
func (l *Leg) negotiate(ctx context.Context, offer func(done func(*message, error)), withdraw func()) ([]byte, error) {
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

func (l *Leg) sendReinvite(sdp []byte, done func(*message, error)) {
	switch {
	case l.state != legConfirmed:
		done(nil, ErrLegEnded)
		return
	case l.ownOfferPending() && !l.sessionTimer.refreshPending:
		done(nil, ErrOfferPending)
		return
	case l.pendingReinvite != nil || l.unacked != nil || l.sessionTimer.refreshPending: // the peer's offer is first: act as if ours had been refused
		done(nil, &StatusError{Method: "INVITE", Status: 491, Reason: reasonPhrase(491)})
		return
	}
	o := requestTemplate{method: "INVITE", contentType: sdpType, body: sdp, extraFields: l.shard.srv.capabilityFields() + l.sessionTimer.headerFields()}
	l.onOfferAnswered = done
	judge := l.resultHandler("INVITE", done)
	l.reinviteTx = l.sendInDialog(o, func(m *message, status int) {
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
			l.notePeerSDP(m.body)
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
func (l *Leg) handleReinviteAnswer(m *message, late bool) {
	if t := contactURI(m); t != "" {
		l.route.target = t
	}
	l.ackSeq = m.cseq
	if !late {
		l.sendAck(m.cseq, nil)
		return
	}
	l.lastACK = nil
}

func (l *Leg) cancelReinvite() {
	if tx := l.reinviteTx; tx != nil && tx.gotProvisional {
		l.shard.cancelInviteTx(tx)
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
