package sip

// CANCEL of an outgoing INVITE (RFC 3261 §9.1).

// Cancel cancels an outgoing call that is not answered yet. Failed with 487 follows at once. An answer that crosses
// the CANCEL is acknowledged and hung up (RFC 3261 §9.1). After the answer Cancel does nothing.
func (l *Leg) Cancel() {
	l.perform(func() { l.giveUp(Failed{Status: 487, Reason: phrase(487)}) })
}

// abortRinging reports the end of an unanswered outgoing call and sends the CANCEL as soon as that is allowed.
func (l *Leg) giveUp(f Failed) {
	if l.state != legRinging || l.inbound {
		return
	}
	l.finish(f)
	l.state = legCanceling
	s := l.shard
	s.timers.set(&l.timer, s.now+patience)
	if l.call.tx.heard {
		l.sendCancel()
	}
}

func (l *Leg) sendCancel() {
	if l.call.canceled {
		return
	}
	l.call.canceled = true
	l.shard.cancelTx(l.call.tx)
}

// cancelInviteTx sends the CANCEL of an INVITE (RFC 3261 §9.1), once.
func (s *shard) cancelTx(tx *clientTx) {
	key := clientKey{tx.key.branch, cancelTx}
	if tx.request == nil || s.clients[tx.key] != tx || s.clients[key] != nil {
		return
	}
	b := derive(nil, tx.request, "CANCEL", "")
	s.start(key, tx.flow, b, func(*message, int) {})
}

// cancelTimedOut ends a call if its INVITE got no final response after our CANCEL (RFC 3261 §9.1).
func (l *Leg) abandon() {
	if tx := l.call.tx; l.shard.clients[tx.key] == tx {
		l.shard.dropClient(tx)
	}
	l.end(Closed{})
}
