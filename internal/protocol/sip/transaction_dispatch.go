package sip

// Dispatch of received messages to transactions and dialogs.

// handleMessage handles one received message.
func (s *shard) handleMessage(raw string, f flow) {
	m := &s.msg
	if err := m.parse(raw, f); err != nil {
		s.stats.parseErrors.Add(1)
		s.srv.countFutileRequest(f.addr.Addr(), f.transport())
		return
	}
	bad := m.readMandatory()
	if m.status != 0 {
		s.handleResponse(m, bad)
		return
	}
	s.handleRequest(m, bad)
}

// handleResponse passes a response to its transaction, or a repeated 2xx to its dialog. It drops malformed responses,
// unknown ones and those with a second Via (RFC 3261 §8.1.3.3, §18.1.2).
func (s *shard) handleResponse(m *message, bad *refusal) {
	if bad != nil || m.via.rest != "" || countFields(m, fVia) != 1 {
		s.stats.parseErrors.Add(1)
		return
	}
	branch, ok := parseBranch(m.via.branch)
	if !ok {
		return
	}
	if tx := s.clientTxs[clientKey{branch, txKindOf(m.cseqMethod)}]; tx != nil {
		tx.receive(s, m)
		return
	}
	if m.cseqMethod == "INVITE" && m.status >= 200 && m.status < 300 {
		if l := s.legs[s.dialogKey(m.callID, m.from.tag)]; l != nil {
			l.lateAnswer2xx(m)
		}
	}
}

func countFields(m *message, k fieldName) (n int) {
	for i := range m.fields {
		if m.fields[i].kind == k {
			n++
		}
	}
	return n
}

func (s *shard) handleRequest(m *message, bad *refusal) {
	if !m.has(fVia) {
		s.stats.parseErrors.Add(1)
		return // no Via: the response has no destination
	}
	if bad == nil && m.method == "ACK" {
		s.handleACK(m)
		return
	}
	if s.scans(m) {
		return
	}
	if bad == nil {
		if tx := s.serverTxs[s.txKey(m, m.method)]; tx != nil {
			tx.retransmit(s)
			return
		}
		bad = m.validate(s.srv.allow)
	} else {
		s.stats.parseErrors.Add(1)
	}
	if bad == nil {
		bad = s.detectLoop(m)
	}
	if bad != nil {
		s.refuseStateless(m, bad)
		return
	}
	s.dispatchRequest(m)
}

// scans reports whether a request of an untrusted source shows a scanner. It gets no answer, and its source is
// banned.
func (s *shard) scans(m *message) bool {
	if m.to.tag != "" || !isScanner(m.get(fUserAgent)) || s.srv.guard.trusted(m.flow.addr.Addr(), s.now) {
		return false
	}
	s.srv.banScanner(m.flow)
	return true
}

// refuseStateless answers without a transaction (RFC 3261 §8.2.7). ACKs and banned sources get no answer.
func (s *shard) refuseStateless(m *message, r *refusal) {
	s.srv.countFutileRequest(m.flow.addr.Addr(), m.flow.transport())
	if m.method == "ACK" || s.srv.guard.banned(m.flow.addr.Addr(), s.now) {
		return
	}
	s.buf = m.appendResponse(s.buf[:0], r.status, r.reason, s.srv.statelessTag(m), r.extra)
	s.sender.send(m.replyFlow(), s.buf)
}

// detectLoop refuses a request if its topmost Via belongs to one of our own pending transactions: it was routed back
// to this server (RFC 3261 §16.3).
func (s *shard) detectLoop(m *message) *refusal {
	branch, ok := parseBranch(m.via.branch)
	if !ok {
		return nil
	}
	if tx := s.clientTxs[clientKey{branch, txKindOf(m.method)}]; tx != nil && tx.state == txTrying {
		return &refusal{status: 482}
	}
	return nil
}

// dispatchRequest handles a valid request that is not a retransmission.
func (s *shard) dispatchRequest(m *message) {
	switch {
	case m.method == "CANCEL":
		s.handleCancel(m)
	case m.method == "SUBSCRIBE":
		s.handleSubscribe(m)
	case m.to.tag != "":
		s.handleInDialog(m)
	case m.method == "INVITE":
		s.handleInvite(m)
	case m.method == "REGISTER":
		s.handleRegister(m)
	case m.method == "OPTIONS":
		s.answerOptions(m)
	case m.method == "MESSAGE":
		s.handleText(m)
	case m.method == "REFER":
		s.reply(m, 403, "") // out-of-dialog REFER: only a party of a call may request a transfer
	default: // BYE, INFO, NOTIFY without a dialog
		s.reply(m, 481, "")
	}
}

// reply answers a request other than INVITE by a new transaction.
func (s *shard) reply(m *message, status int, extra string) {
	tx := s.newServerTx(m, s.txKey(m, m.method))
	s.buf = m.appendResponse(s.buf[:0], status, "", s.srv.statelessTag(m), extra)
	tx.respond(s, status, s.buf)
}

// answerOptions answers OPTIONS with our capabilities (RFC 3261 §11.2). A draining server answers 503, so that a
// proxy in front sends calls elsewhere.
func (s *shard) answerOptions(m *message) {
	if m.to.tag == "" {
		s.srv.countFutileRequest(m.flow.addr.Addr(), m.flow.transport())
	}
	if s.srv.draining.Load() && m.to.tag == "" {
		s.reply(m, 503, s.srv.retryAfter())
		return
	}
	s.reply(m, 200, "Allow: "+s.srv.allow+"\r\nAccept: "+sdpType+"\r\nAccept-Encoding: identity\r\nAllow-Events: "+s.srv.allowEvents+"\r\nSupported: "+supportedOptions+"\r\n")
}

// handleCancel answers a CANCEL and ends its INVITE (RFC 3261 §9.2).
func (s *shard) handleCancel(m *message) {
	invite := s.serverTxs[s.txKey(m, "INVITE")]
	if invite == nil {
		s.refuseStateless(m, &refusal{status: 481})
		return
	}
	s.reply(m, 200, "")
	if invite.leg != nil {
		invite.leg.handleCancel(m)
	}
}

// handleACK passes an ACK to the INVITE transaction it ends, or to the dialog of a 2xx.
func (s *shard) handleACK(m *message) {
	if tx := s.serverTxs[s.txKey(m, "INVITE")]; tx != nil && (tx.state == txCompleted || tx.state == txConfirmed) {
		tx.handleACK(s)
		return
	}
	if l := s.legs[s.dialogKey(m.callID, m.to.tag)]; l != nil && l.isFromPeer(m) {
		l.handleACK(m)
	}
}

// handleInDialog passes a request to its dialog (RFC 3261 §12.2.2), or answers 481.
func (s *shard) handleInDialog(m *message) {
	l := s.legs[s.dialogKey(m.callID, m.to.tag)]
	if l == nil || !l.isFromPeer(m) || l.state == legTerminated {
		s.refuseStateless(m, &refusal{status: 481})
		return
	}
	l.handleRequest(m)
}
