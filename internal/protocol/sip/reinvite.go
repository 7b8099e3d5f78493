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
	return l.negotiate(ctx, func(done func(*message, error)) { l.reoffer(sdp, done) }, l.withdraw)
}

// negotiate repeats an offer until it does not collide with an offer of the peer (491).
func (l *Leg) negotiate(ctx context.Context, offer func(done func(*message, error)), withdraw func()) ([]byte, error) {
	for {
		body, err := l.askUntil(ctx, offer, withdraw)
		if ctx.Err() != nil && err != nil {
			return nil, err
		}
		if e, ok := err.(*StatusError); !ok || e.Status != 491 {
			return body, err
		}
		if err := pause(ctx, l.glarePause()); err != nil {
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

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Leg) reoffer(sdp []byte, done func(*message, error)) {
	switch {
	case l.state != legConfirmed:
		done(nil, ErrOver)
		return
	case l.offering() && !l.session.asking:
		done(nil, ErrPending)
		return
	case l.offered != nil || l.unacked != nil || l.session.asking: // the peer's offer is first: act as if ours had been refused
		done(nil, &StatusError{Method: "INVITE", Status: 491, Reason: phrase(491)})
		return
	}
	o := outline{method: "INVITE", contentType: sdpType, body: sdp, extra: l.shard.srv.able() + l.session.fields()}
	l.waiting = done
	judge := l.judge("INVITE", done)
	l.reinvite = l.transact(o, func(m *message, status int) {
		belated := l.withdrawn
		switch {
		case status >= 200:
			l.reinvite, l.waiting, l.withdrawn = nil, nil, false
		case belated: // RFC 3261 §9.1: no CANCEL before a provisional response
			l.cancelReinvite()
		}
		if m != nil && status >= 200 && status < 300 {
			l.reanswered(m, sdp == nil)
			l.say(sdp)
			l.hear(m.body)
			l.learn(m)
			l.session.granted(m)
			if belated {
				l.emit(Belated{})
			}
		}
		judge(m, status)
	})
}

// withdrawReinvite cancels our re-INVITE because its caller no longer waits for the answer.
func (l *Leg) withdraw() {
	l.withdrawn = l.reinvite != nil
	l.cancelReinvite()
}

// handleReinviteAnswer handles the 2xx of our re-INVITE. The remote target may have changed.
func (l *Leg) reanswered(m *message, late bool) {
	if t := contactURI(m); t != "" {
		l.path.target = t
	}
	l.ackSeq = m.cseq
	if !late {
		l.sendAck(m.cseq, nil)
		return
	}
	l.ack = nil
}

func (l *Leg) cancelReinvite() {
	if tx := l.reinvite; tx != nil && tx.heard {
		l.shard.cancelTx(tx)
		l.patience()
	}
}

// Ack sends the ACK of a late offer with our answer.
func (l *Leg) Ack(sdp []byte) {
	l.post(func() {
		if l.state == legAnswered && !l.inbound {
			l.state = legConfirmed
		}
		if l.state == legConfirmed && l.ack == nil {
			l.sendAck(l.ackSeq, sdp)
			l.say(sdp)
		}
	})
}
