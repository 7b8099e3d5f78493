package sip

import (
	"soniq/internal/protocol/sip/sipmsg"
)

// Ending a dialog: BYE (RFC 3261 §15) and CANCEL (§9).

// Bye hangs up in any state. An outgoing call that rings is canceled, an inbound one refused with 480. An answered
// inbound call waits for its ACK before the BYE leaves (RFC 3261 §15). Closed or Failed follows.
func (l *Leg) Bye(r Reason) { l.runOrEnqueue(func() { l.hangUp(r) }) }

func (l *Leg) hangUp(r Reason) {
	switch {
	case l.state == legRinging && l.inbound:
		l.sendRejection(480, "", 0)
	case l.state == legRinging:
		l.outgoingInvite.cancelReason = r.Cancel
		l.abortRinging(Failed{Status: 487, Reason: sipmsg.ReasonPhrase(487)})
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
		b := sipmsg.AppendInt([]byte("Reason: Q.850;cause="), int64(r.Q850))
		if r.Text != "" {
			b = sipmsg.AppendQuoted(append(b, ";text="...), r.Text)
		}
		extra = string(append(b, "\r\n"...))
	}
	l.sendInDialog(requestTemplate{method: "BYE", extraFields: extra}, func(m *received, status int) {
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

// Cancel cancels an outgoing call that is not answered yet. Failed with 487 follows at once. An answer that crosses
// the CANCEL is acknowledged and hung up (RFC 3261 §9.1). After the answer Cancel does nothing.
func (l *Leg) Cancel() {
	l.runOrEnqueue(func() { l.abortRinging(Failed{Status: 487, Reason: sipmsg.ReasonPhrase(487)}) })
}

// abortRinging reports the end of an unanswered outgoing call and sends the CANCEL as soon as that is allowed.
func (l *Leg) abortRinging(f Failed) {
	if l.state != legRinging || l.inbound {
		return
	}
	l.emitFinal(f)
	l.state = legCanceling
	s := l.shard
	s.timers.set(&l.timer, s.now+txTimeout)
	if l.outgoingInvite.tx.gotProvisional {
		l.sendCancel()
	}
}

func (l *Leg) sendCancel() {
	if l.outgoingInvite.canceled {
		return
	}
	l.outgoingInvite.canceled = true
	l.shard.cancelInviteTx(l.outgoingInvite.tx, l.outgoingInvite.cancelReason)
}

// cancelInviteTx sends the CANCEL of an INVITE (RFC 3261 §9.1), once, with a Reason unless it is empty.
func (s *shard) cancelInviteTx(tx *clientTx, reason string) {
	key := clientKey{tx.key.branch, cancelTx}
	if tx.request == nil || s.clientTxs[tx.key] != tx || s.clientTxs[key] != nil {
		return
	}
	b := sipmsg.DeriveRequest(nil, tx.request, "CANCEL", "", reasonFields(reason)...)
	s.startClientTx(key, tx.flow, b, func(*received, int) {})
}

// LostInvite is an INVITE to a phone whose connection was closed. The phone may ring on.
type LostInvite struct {
	shard *shard
	tx    *clientTx
}

// Cancel sends the CANCEL of the INVITE over the connection of a new registration, with a Reason unless it is empty. It
// calls done on the goroutine of the shard as soon as the phone has responded, also if it does not know the INVITE any
// more. Without a response it calls done when the transaction ends.
func (i *LostInvite) Cancel(b Binding, reason string, done func()) {
	f := i.shard.srv.bindingFlow(&b)
	i.shard.enqueue(func(s *shard) {
		key := clientKey{i.tx.key.branch, cancelTx}
		if i.tx.request == nil || s.clientTxs[key] != nil {
			done()
			return
		}
		request := sipmsg.DeriveRequest(nil, i.tx.request, "CANCEL", "", reasonFields(reason)...)
		s.startClientTx(key, f, request, func(_ *received, status int) {
			if status >= 200 {
				done()
			}
		})
	})
}

// reasonFields returns the Reason field of a CANCEL, or none.
func reasonFields(reason string) []string {
	if reason == "" {
		return nil
	}
	return []string{"Reason", reason}
}

// cancelTimedOut ends a call if its INVITE got no final response after our CANCEL (RFC 3261 §9.1).
func (l *Leg) cancelTimedOut() {
	if tx := l.outgoingInvite.tx; l.shard.clientTxs[tx.key] == tx {
		l.shard.dropClient(tx)
	}
	l.terminate(Closed{})
}
