package sip

// CANCEL of an outgoing INVITE (RFC 3261 §9.1).

// Cancel cancels an outgoing call that is not answered yet. Failed with 487 follows at once. An answer that crosses
// the CANCEL is acknowledged and hung up (RFC 3261 §9.1). After the answer Cancel does nothing.
func (l *Leg) Cancel() {
	l.runOrEnqueue(func() { l.abortRinging(Failed{Status: 487, Reason: reasonPhrase(487)}) })
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
	l.shard.cancelInviteTx(l.outgoingInvite.tx)
}

// cancelInviteTx sends the CANCEL of an INVITE (RFC 3261 §9.1), once.
func (s *shard) cancelInviteTx(tx *clientTx) {
	key := clientKey{tx.key.branch, cancelTx}
	if tx.request == nil || s.clientTxs[tx.key] != tx || s.clientTxs[key] != nil {
		return
	}
	b := deriveRequest(nil, tx.request, "CANCEL", "")
	s.startClientTx(key, tx.flow, b, func(*message, int) {})
}

// cancelTimedOut ends a call if its INVITE got no final response after our CANCEL (RFC 3261 §9.1).
func (l *Leg) cancelTimedOut() {
	if tx := l.outgoingInvite.tx; l.shard.clientTxs[tx.key] == tx {
		l.shard.dropClient(tx)
	}
	l.terminate(Closed{})
}
