package sip

// Dispatch of received messages to transactions and dialogs.

// handleMessage handles one received message.
func (s *shard) message(raw string, f flow) {
	m := &s.msg
	if err := m.parse(raw, f); err != nil {
		s.stats.parseErrors.Add(1)
		s.srv.suspect(f.addr.Addr(), f.transport())
		return
	}
	bad := m.read()
	if m.status != 0 {
		s.response(m, bad)
		return
	}
	s.request(m, bad)
}

// handleResponse passes a response to its transaction, or a repeated 2xx to its dialog. It drops malformed responses,
// unknown ones and those with a second Via (RFC 3261 §8.1.3.3, §18.1.2).
func (s *shard) response(m *message, bad *refusal) {
	if bad != nil || m.via.rest != "" || count(m, fVia) != 1 {
		s.stats.parseErrors.Add(1)
		return
	}
	branch, ok := branchOf(m.via.branch)
	if !ok {
		return
	}
	if tx := s.clients[clientKey{branch, kindOf(m.cseqMethod)}]; tx != nil {
		tx.receive(s, m)
		return
	}
	if m.cseqMethod == "INVITE" && m.status >= 200 && m.status < 300 {
		if l := s.legs[s.dialogKey(m.callID, m.from.tag)]; l != nil {
			l.strayAnswer(m)
		}
	}
}

func count(m *message, k fieldName) (n int) {
	for i := range m.fields {
		if m.fields[i].kind == k {
			n++
		}
	}
	return n
}

func (s *shard) request(m *message, bad *refusal) {
	if !m.has(fVia) {
		s.stats.parseErrors.Add(1)
		return // no Via: the response has no destination
	}
	if bad == nil && m.method == "ACK" {
		s.ack(m)
		return
	}
	if s.scans(m) {
		return
	}
	if bad == nil {
		if tx := s.servers[s.txKey(m, m.method)]; tx != nil {
			tx.again(s)
			return
		}
		bad = m.check(s.srv.allow)
	} else {
		s.stats.parseErrors.Add(1)
	}
	if bad == nil {
		bad = s.loop(m)
	}
	if bad != nil {
		s.refuse(m, bad)
		return
	}
	s.accept(m)
}

// scans reports whether a request of an untrusted source shows a scanner. It gets no answer, and its source is
// banned.
func (s *shard) scans(m *message) bool {
	if m.to.tag != "" || !isScanner(m.get(fUserAgent)) || s.srv.guard.trusted(m.flow.addr.Addr(), s.now) {
		return false
	}
	s.srv.caught(m.flow)
	return true
}

// refuseStateless answers without a transaction (RFC 3261 §8.2.7). ACKs and banned sources get no answer.
func (s *shard) refuse(m *message, r *refusal) {
	s.srv.suspect(m.flow.addr.Addr(), m.flow.transport())
	if m.method == "ACK" || s.srv.guard.banned(m.flow.addr.Addr(), s.now) {
		return
	}
	s.buf = m.appendResponse(s.buf[:0], r.status, r.reason, s.srv.statelessTag(m), r.extra)
	s.wire.send(m.replyFlow(), s.buf)
}

// detectLoop refuses a request if its topmost Via belongs to one of our own pending transactions: it was routed back
// to this server (RFC 3261 §16.3).
func (s *shard) loop(m *message) *refusal {
	branch, ok := branchOf(m.via.branch)
	if !ok {
		return nil
	}
	if tx := s.clients[clientKey{branch, kindOf(m.method)}]; tx != nil && tx.state == trying {
		return &refusal{status: 482}
	}
	return nil
}

// dispatchRequest handles a valid request that is not a retransmission.
func (s *shard) accept(m *message) {
	switch {
	case m.method == "CANCEL":
		s.cancel(m)
	case m.method == "SUBSCRIBE":
		s.subscribe(m)
	case m.to.tag != "":
		s.inDialog(m)
	case m.method == "INVITE":
		s.invite(m)
	case m.method == "REGISTER":
		s.register(m)
	case m.method == "OPTIONS":
		s.options(m)
	case m.method == "MESSAGE":
		s.text(m)
	case m.method == "REFER":
		s.reply(m, 403, "") // out-of-dialog REFER: only a party of a call may request a transfer
	default: // BYE, INFO, NOTIFY without a dialog
		s.reply(m, 481, "")
	}
}

// reply answers a request other than INVITE by a new transaction.
func (s *shard) reply(m *message, status int, extra string) {
	tx := s.serve(m, s.txKey(m, m.method))
	s.buf = m.appendResponse(s.buf[:0], status, "", s.srv.statelessTag(m), extra)
	tx.respond(s, status, s.buf)
}

// answerOptions answers OPTIONS with our capabilities (RFC 3261 §11.2). A draining server answers 503, so that a
// proxy in front sends calls elsewhere.
func (s *shard) options(m *message) {
	if m.to.tag == "" {
		s.srv.suspect(m.flow.addr.Addr(), m.flow.transport())
	}
	if s.srv.draining.Load() && m.to.tag == "" {
		s.reply(m, 503, s.srv.retryAfter())
		return
	}
	s.reply(m, 200, "Allow: "+s.srv.allow+"\r\nAccept: "+sdpType+"\r\nAccept-Encoding: identity\r\nAllow-Events: "+s.srv.allowEvents+"\r\nSupported: "+supported+"\r\n")
}

// handleCancel answers a CANCEL and ends its INVITE (RFC 3261 §9.2).
func (s *shard) cancel(m *message) {
	invite := s.servers[s.txKey(m, "INVITE")]
	if invite == nil {
		s.refuse(m, &refusal{status: 481})
		return
	}
	s.reply(m, 200, "")
	if invite.leg != nil {
		invite.leg.canceled(m)
	}
}

// handleACK passes an ACK to the INVITE transaction it ends, or to the dialog of a 2xx.
func (s *shard) ack(m *message) {
	if tx := s.servers[s.txKey(m, "INVITE")]; tx != nil && (tx.state == completed || tx.state == confirmed) {
		tx.acked(s)
		return
	}
	if l := s.legs[s.dialogKey(m.callID, m.to.tag)]; l != nil && l.fromPeer(m) {
		l.acked(m)
	}
}

// handleInDialog passes a request to its dialog (RFC 3261 §12.2.2), or answers 481.
func (s *shard) inDialog(m *message) {
	l := s.legs[s.dialogKey(m.callID, m.to.tag)]
	if l == nil || !l.fromPeer(m) || l.state == legOver {
		s.refuse(m, &refusal{status: 481})
		return
	}
	l.request(m)
}
