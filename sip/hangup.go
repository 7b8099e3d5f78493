package sip

import (
	"context"
	"math/rand/v2"
	"time"
)

// Bye hangs up in whatever state the leg is: an outgoing call that rings is
// canceled, an inbound one refused with 480, an answered one waits for its ACK
// before the BYE leaves (RFC 3261 §15). Closed or Failed follows.
func (l *Leg) Bye(r Reason) { l.post(func() { l.hangUp(r) }) }

func (l *Leg) hangUp(r Reason) {
	switch {
	case l.state == legRinging && l.inbound:
		l.reject(480, "", 0)
	case l.state == legRinging:
		l.giveUp(Failed{Status: 487, Reason: phrase(487)})
	case l.state == legAnswered && l.inbound && l.shard.now < l.unacked.end:
		l.bye = &r // RFC 3261 §15: not before the ACK
	case l.state == legAnswered && !l.inbound:
		l.sendAck(l.ackSeq, nil) // the offer gets no answer, but the 2xx its ACK
		l.sendBye(r)
	case l.state == legAnswered || l.state == legConfirmed:
		l.sendBye(r)
	}
}

func (l *Leg) sendBye(r Reason) {
	s := l.shard
	l.state = legEnding
	l.unacked = nil
	s.timers.stop(&l.timer)
	if l.offered != nil {
		l.offered.respond(l, 487, nil)
	}
	extra := ""
	if r.Q850 > 0 {
		b := appendInt([]byte("Reason: Q.850;cause="), int64(r.Q850))
		if r.Text != "" {
			b = appendQuoted(append(b, ";text="...), r.Text)
		}
		extra = string(append(b, "\r\n"...))
	}
	l.transact(outline{method: "BYE", extra: extra}, func(m *message, status int) {
		if status >= 200 {
			l.end(Closed{})
		}
	})
}

// lose ends a dialog that the other side no longer has (RFC 3261 §12.2.1.2).
func (l *Leg) lose(why string) {
	if l.state != legConfirmed {
		return
	}
	l.sendBye(Reason{})
	l.finish(Lost{Why: why})
}

// Info sends INFO and returns when it is answered.
func (l *Leg) Info(ctx context.Context, contentType string, body []byte) error {
	_, err := l.ask(ctx, func(done func(*message, error)) {
		if l.state != legConfirmed {
			done(nil, ErrOver)
			return
		}
		l.transact(outline{method: "INFO", contentType: clean(contentType), body: body}, l.judge("INFO", done))
	})
	return err
}

// judge turns a final response into a result, and ends the dialog on 408 and
// 481 (RFC 3261 §12.2.1.2).
func (l *Leg) judge(method string, done func(*message, error)) reply {
	return func(m *message, status int) {
		if status < 200 {
			return
		}
		if status < 300 {
			done(m, nil)
			return
		}
		reason := phrase(status)
		if m != nil {
			reason = m.reason
		}
		done(nil, &StatusError{Method: method, Status: status, Reason: reason})
		if status == 408 || status == 481 {
			l.lose(method + ": " + reason)
		}
	}
}

type answer struct {
	body []byte
	err  error
}

// ask runs do on the shard and waits for its result.
func (l *Leg) ask(ctx context.Context, do func(done func(*message, error))) ([]byte, error) {
	result := make(chan answer, 1)
	ok := l.shard.post(func(*shard) {
		do(func(m *message, err error) {
			a := answer{err: err}
			if m != nil && m.body != "" {
				a.body = []byte(m.body)
			}
			select {
			case result <- a:
			default:
			}
		})
	})
	if !ok {
		return nil, ErrClosed
	}
	select {
	case a := <-result:
		return a.body, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.shard.srv.done:
		return nil, ErrClosed
	}
}

// Reinvite offers sdp and returns the answer; the ACK has been sent. With nil
// sdp it returns the other side's offer and Ack must follow. 491 is retried
// after the pause of RFC 3261 §14.1 until ctx ends; when ctx ends first, the
// re-INVITE is canceled. Other refusals are a *StatusError and leave the
// session as it was.
func (l *Leg) Reinvite(ctx context.Context, sdp []byte) ([]byte, error) {
	for {
		body, err := l.ask(ctx, func(done func(*message, error)) { l.reoffer(sdp, done) })
		if ctx.Err() != nil && err != nil {
			l.post(l.cancelReinvite)
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

// glarePause: RFC 3261 §14.1; who made the Call-ID waits longer.
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
	case l.reinvite != nil:
		done(nil, ErrPending)
		return
	case l.offered != nil || l.unacked != nil: // theirs is first: as if it had been refused
		done(nil, &StatusError{Method: "INVITE", Status: 491, Reason: phrase(491)})
		return
	}
	o := outline{method: "INVITE", contentType: sdpType, body: sdp, extra: "Allow: " + l.shard.srv.allow + "\r\n"}
	l.waiting = done
	judge := l.judge("INVITE", done)
	l.reinvite = l.transact(o, func(m *message, status int) {
		if status >= 200 {
			l.reinvite, l.waiting = nil, nil
		}
		if m != nil && status >= 200 && status < 300 {
			l.reanswered(m, sdp == nil)
		}
		judge(m, status)
	})
}

// reanswered takes the 2xx of our re-INVITE: the target may have moved.
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
		}
	})
}
