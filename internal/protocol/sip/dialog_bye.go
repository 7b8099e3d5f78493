package sip

// BYE (RFC 3261 §15).

// Bye hangs up in any state. An outgoing call that rings is canceled, an inbound one refused with 480. An answered
// inbound call waits for its ACK before the BYE leaves (RFC 3261 §15). Closed or Failed follows.
func (l *Leg) Bye(r Reason) { l.runOrEnqueue(func() { l.hangUp(r) }) }

func (l *Leg) hangUp(r Reason) {
	switch {
	case l.state == legRinging && l.inbound:
		l.sendRejection(480, "", 0)
	case l.state == legRinging:
		l.abortRinging(Failed{Status: 487, Reason: reasonPhrase(487)})
	case l.state == legAnswered && l.inbound && l.shard.now < l.unacked.deadline:
		l.deferredBye = &r // RFC 3261 §15: not before the ACK
	case l.state == legAnswered && !l.inbound:
		l.sendAck(l.ackSeq, nil) // the offer gets no answer, but the 2xx gets its ACK
		l.sendBye(r)
	case l.state == legAnswered || l.state == legConfirmed:
		l.sendBye(r)
	}
}

func (l *Leg) sendBye(r Reason) {
	s := l.shard
	l.referSubscription.flush()
	l.state = legEnding
	l.unacked = nil
	s.timers.stop(&l.timer)
	l.sessionTimer.stop(s)
	if l.pendingReinvite != nil {
		l.pendingReinvite.respond(l, 487, nil)
	}
	extra := ""
	if r.Q850 > 0 {
		b := appendInt([]byte("Reason: Q.850;cause="), int64(r.Q850))
		if r.Text != "" {
			b = appendQuoted(append(b, ";text="...), r.Text)
		}
		extra = string(append(b, "\r\n"...))
	}
	l.sendInDialog(requestTemplate{method: "BYE", extraFields: extra}, func(m *message, status int) {
		if status >= 200 {
			l.terminate(Closed{})
		}
	})
}

// DeclareLost hangs up on a peer that is assumed unreachable. Lost follows at once, without waiting for the answer to
// the BYE.
func (l *Leg) DeclareLost(why string) { l.enqueue(func() { l.endAsLost(why) }) }

// endAsLost ends a dialog that the peer no longer has (RFC 3261 §12.2.1.2): it sends a BYE and reports Lost.
func (l *Leg) endAsLost(why string) {
	if l.state != legConfirmed {
		return
	}
	l.sendBye(Reason{})
	l.emitFinal(Lost{Why: why})
}
