package sip

import (
	"net/netip"

	"soniq/internal/protocol/sip/guard"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// Dispatch of received messages to transactions and dialogs.

// received is a message and the flow on which it arrived.
type received struct {
	sipmsg.Message
	flow transport.Flow
}

// parse parses raw, which arrived on a flow.
func (m *received) parse(raw string, f transport.Flow) error {
	m.flow = f
	return m.Message.Parse(raw, f.Addr)
}

// viaProxy reports whether a request passed a proxy: it has more than one Via.
func (m *received) viaProxy() bool { return m.Via.Rest != "" || m.Count(sipmsg.FieldVia) > 1 }

// replyFlow returns the flow of responses to m: its own connection, or for UDP the source address with the port of
// Via.ReplyPort (RFC 3261 §18.2.2).
func (m *received) replyFlow() transport.Flow {
	f := m.flow
	if f.Conn == nil {
		f.Addr = netip.AddrPortFrom(f.Addr.Addr(), m.Via.ReplyPort(f.Addr.Port()))
	}
	return f
}

// handleMessage handles one received message.
func (s *shard) handleMessage(raw string, f transport.Flow) {
	m := &s.msg
	if err := m.parse(raw, f); err != nil {
		s.stats.parseErrors.Add(1)
		s.srv.countFutileRequest(f.Source().Addr(), f.Transport())
		return
	}
	bad := m.ReadMandatory()
	if m.Status != 0 {
		s.handleResponse(m, bad)
		return
	}
	s.handleRequest(m, bad)
}

// handleResponse passes a response to its transaction, or a repeated 2xx to its dialog. It drops malformed responses,
// unknown ones and those with a second Via (RFC 3261 §8.1.3.3, §18.1.2).
func (s *shard) handleResponse(m *received, bad *sipmsg.Refusal) {
	if bad != nil || m.Via.Rest != "" || m.Count(sipmsg.FieldVia) != 1 {
		s.stats.parseErrors.Add(1)
		return
	}
	branch, ok := sipmsg.ParseBranch(m.Via.Branch)
	if !ok {
		return
	}
	if tx := s.clientTxs[clientKey{branch, txKindOf(m.CSeqMethod)}]; tx != nil {
		tx.receive(s, m)
		return
	}
	if m.CSeqMethod == "INVITE" && m.Status >= 200 && m.Status < 300 {
		if l := s.legs[s.dialogKey(m.CallID, m.From.Tag)]; l != nil {
			l.lateAnswer2xx(m)
		}
	}
}

func (s *shard) handleRequest(m *received, bad *sipmsg.Refusal) {
	if !m.Has(sipmsg.FieldVia) {
		s.stats.parseErrors.Add(1)
		return // no Via: the response has no destination
	}
	if bad == nil && m.Method == "ACK" {
		s.handleACK(m)
		return
	}
	if s.scans(m) {
		return
	}
	if bad == nil {
		if tx := s.serverTxs[s.txKey(m, m.Method)]; tx != nil {
			tx.retransmit(s)
			return
		}
		bad = m.Validate(s.srv.allow)
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
func (s *shard) scans(m *received) bool {
	if m.To.Tag != "" || !guard.IsScanner(m.Get(sipmsg.FieldUserAgent)) || s.srv.guard.Trusted(m.flow.Source().Addr(), s.now) {
		return false
	}
	s.srv.banScanner(m.flow)
	return true
}

// refuseStateless answers without a transaction (RFC 3261 §8.2.7). ACKs and banned sources get no answer.
func (s *shard) refuseStateless(m *received, r *sipmsg.Refusal) {
	s.srv.countFutileRequest(m.flow.Source().Addr(), m.flow.Transport())
	if m.Method == "ACK" || s.srv.guard.Banned(m.flow.Source().Addr(), s.now) {
		return
	}
	s.buf = m.AppendResponse(s.buf[:0], r.Status, r.Reason, s.srv.statelessTag(m), r.Extra)
	s.sender.Send(m.replyFlow(), s.buf)
}

// detectLoop refuses a request if its topmost Via belongs to one of our own pending transactions: it was routed back
// to this server (RFC 3261 §16.3).
func (s *shard) detectLoop(m *received) *sipmsg.Refusal {
	branch, ok := sipmsg.ParseBranch(m.Via.Branch)
	if !ok {
		return nil
	}
	if tx := s.clientTxs[clientKey{branch, txKindOf(m.Method)}]; tx != nil && tx.state == txTrying {
		return &sipmsg.Refusal{Status: 482}
	}
	return nil
}

// dispatchRequest handles a valid request that is not a retransmission.
func (s *shard) dispatchRequest(m *received) {
	switch {
	case m.Method == "CANCEL":
		s.handleCancel(m)
	case m.Method == "SUBSCRIBE":
		s.handleSubscribe(m)
	case m.To.Tag != "":
		s.handleInDialog(m)
	case m.Method == "INVITE":
		s.handleInvite(m)
	case m.Method == "REGISTER":
		s.handleRegister(m)
	case m.Method == "OPTIONS":
		s.answerOptions(m)
	case m.Method == "MESSAGE":
		s.handleText(m)
	case m.Method == "REFER":
		s.reply(m, 403, "") // out-of-dialog REFER: only a party of a call may request a transfer
	default: // BYE, INFO, NOTIFY without a dialog
		s.reply(m, 481, "")
	}
}

// reply answers a request other than INVITE by a new transaction.
func (s *shard) reply(m *received, status int, extra string) {
	tx := s.newServerTx(m, s.txKey(m, m.Method))
	s.buf = m.AppendResponse(s.buf[:0], status, "", s.srv.statelessTag(m), extra)
	tx.respond(s, status, s.buf)
}

// answerOptions answers OPTIONS with our capabilities (RFC 3261 §11.2). A draining server answers 503, so that a
// proxy in front sends calls elsewhere.
func (s *shard) answerOptions(m *received) {
	if m.To.Tag == "" {
		s.srv.countFutileRequest(m.flow.Source().Addr(), m.flow.Transport())
	}
	if s.srv.draining.Load() && m.To.Tag == "" {
		s.reply(m, 503, s.srv.retryAfter())
		return
	}
	s.reply(m, 200, "Allow: "+s.srv.allow+"\r\nAccept: "+sipmsg.AcceptedTypes+"\r\nAccept-Encoding: identity\r\n"+
		"Allow-Events: "+s.srv.allowEvents+"\r\nSupported: "+sipmsg.SupportedOptions+"\r\n")
}

// handleCancel answers a CANCEL and ends its INVITE (RFC 3261 §9.2).
func (s *shard) handleCancel(m *received) {
	invite := s.serverTxs[s.txKey(m, "INVITE")]
	if invite == nil || !m.flow.IsSameHost(invite.flow) { // RFC 3261 §22.1: a CANCEL cannot be challenged
		s.refuseStateless(m, &sipmsg.Refusal{Status: 481})
		return
	}
	s.reply(m, 200, "")
	if invite.leg != nil {
		invite.leg.handleCancel(m)
	}
}

// handleACK passes an ACK to the INVITE transaction it ends, or to the dialog of a 2xx.
func (s *shard) handleACK(m *received) {
	if tx := s.serverTxs[s.txKey(m, "INVITE")]; tx != nil && (tx.state == txCompleted || tx.state == txConfirmed) {
		tx.handleACK(s)
		return
	}
	l := s.legs[s.dialogKey(m.CallID, m.To.Tag)]
	switch {
	case l == nil || !l.isFromPeer(m):
	case l.unacked != nil && l.unacked.lateOffer && !l.isAtPeer(m.flow):
		l.verifyAnswer(m)
	default: // without an answer it ends repetitions, which anybody may
		l.handleACK(m)
	}
}

// handleInDialog passes a request to its dialog (RFC 3261 §12.2.2), or answers 481. A request from another source than
// the peer's is verified before.
func (s *shard) handleInDialog(m *received) {
	l := s.legs[s.dialogKey(m.CallID, m.To.Tag)]
	if l == nil || !l.isFromPeer(m) || l.state == legTerminated {
		s.refuseStateless(m, &sipmsg.Refusal{Status: 481})
		return
	}
	if !l.isAtPeer(m.flow) {
		l.verifyRequest(m)
		return
	}
	l.handleRequest(m)
}
