package sip

import (
	"context"
	"errors"
	"net/netip"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// Requests received inside a dialog: their source, BYE, INFO and dispatch of the others.

// isAtPeer reports whether a flow is that of the dialog's peer. A phone at another port is not, because others may share
// its address (NAT). A trunk at another port is, and so is an edge itself.
func (l *Leg) isAtPeer(f transport.Flow) bool {
	if f.Source() == l.flow.Source() {
		return true
	}
	ofEdge := !f.Client.IsValid() && l.shard.srv.isEdge(f.Addr.Addr())
	return (l.account == "" || ofEdge) && f.IsSameHost(l.flow) && f.Transport().IsWebSocket() == l.flow.Transport().IsWebSocket()
}

// isKnown reports whether a flow that is not the peer's is as good: the phone registered from there, or the trunk's peer
// named the address in the dialog.
func (l *Leg) isKnown(f transport.Flow) bool {
	source := f.Source()
	if l.account != "" {
		return l.shard.srv.guard.IsAccountFlow(source, l.account, l.shard.now)
	}
	return !f.Transport().IsWebSocket() && l.isNamed(source.Addr())
}

// isNamed reports whether the peer named an address in its Contact or Record-Route.
func (l *Leg) isNamed(a netip.Addr) bool {
	if a.IsPrivate() && !isPrivateAddr(l.flow.Source().Addr()) {
		return false // a private address means nothing outside the peer's network
	}
	named := l.route.names(a)
	if l.outgoingInvite != nil {
		for _, e := range l.outgoingInvite.earlyDialogs {
			named = named || e.path.names(a)
		}
	}
	return named
}

// names reports whether the remote target or a route has an address as its host.
func (p dialogRoute) names(a netip.Addr) bool {
	is := func(uri string) bool {
		u, err := sipmsg.ParseURI(uri)
		host, ok := sipmsg.LiteralAddr(u)
		return err == nil && ok && host.Addr() == a
	}
	return is(p.target) || slices.ContainsFunc(p.routes, func(r string) bool {
		route, err := sipmsg.ReadAddress(r)
		return err == nil && is(route.URI)
	})
}

// strayRequest is a request inside a dialog that did not come from the peer's flow.
type strayRequest struct {
	leg            *Leg
	account, trunk string    // of the leg
	tx             *serverTx // nil for an ACK
	responseHead   []byte
	raw            string
	flow           transport.Flow
	claim          claim
}

// verifyRequest handles a request that did not come from the peer's flow. A phone proves by its password that the
// request is its own. Others need an address of the dialog's trunk.
func (l *Leg) verifyRequest(m *received) {
	s := l.shard
	if l.isKnown(m.flow) {
		l.handleRequest(m)
		return
	}
	if s.srv.lookups.Load() >= int64(s.srv.limits.Lookups) {
		s.refuseStateless(m, &sipmsg.Refusal{Status: 503, Extra: s.srv.retryAfter()})
		return
	}
	r := l.newStray(m)
	r.tx, r.responseHead = s.newServerTx(m, s.txKey(m, m.Method)), m.AppendHead(nil, "")
	s.srv.spawn(func() { s.srv.verifyStray(r) })
}

// verifyAnswer handles an ACK with the answer to our offer that did not come from the peer's flow. An ACK cannot be
// challenged (RFC 3261 §22.1), so the phone's address is enough.
func (l *Leg) verifyAnswer(m *received) {
	s := l.shard
	switch {
	case m.flow.IsSameHost(l.flow) || l.isKnown(m.flow):
		l.handleACK(m)
	case l.account == "" && s.srv.lookups.Load() < int64(s.srv.limits.Lookups):
		r := l.newStray(m)
		s.srv.spawn(func() { s.srv.verifyStray(r) })
	}
}

func (l *Leg) newStray(m *received) *strayRequest {
	r := &strayRequest{leg: l, account: l.account, trunk: l.trunk, raw: m.Raw(), flow: m.flow}
	r.claim = claim{method: m.Method, from: l.account, logins: m.Authorizations(), source: m.flow.Source(), conn: m.flow.Conn,
		viaProxy: m.viaProxy()}
	r.claim.uri, _ = sipmsg.ParseURI(m.URI)
	return r
}

// verifyStray decides about a stray request and returns it to its shard.
func (s *Server) verifyStray(r *strayRequest) {
	defer func() {
		if p := recover(); p != nil {
			s.logPanic(p, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(s.ctx, lookupTimeout)
	defer cancel()
	status, extra := s.judgeStray(ctx, r)
	if status == 403 || status == 407 && len(r.claim.logins) == 0 {
		s.countFutileRequest(r.claim.source.Addr(), r.flow.Transport())
	}
	r.leg.shard.enqueue(func(*shard) { r.finish(status, extra) })
}

// judgeStray returns 0 if a stray request is the peer's, otherwise the status of the refusal.
func (s *Server) judgeStray(ctx context.Context, r *strayRequest) (status int, extra string) {
	if r.account == "" {
		if !r.flow.Transport().IsWebSocket() && s.config.Accounts.IsSourceOf(ctx, r.trunk, r.claim.source) {
			return 0, ""
		}
		return 403, otherSourceWarning
	}
	acc, stale, ok, err := s.authenticate(ctx, r.claim)
	switch {
	case errors.Is(err, errOtherURI):
		return 400, otherURIWarning
	case err != nil:
		s.logFailure("look up the account of a request inside a dialog", err)
		return 503, s.retryAfter()
	case ok && acc.ID == r.account:
		return 0, ""
	case ok:
		return 403, otherSourceWarning
	}
	s.stats.challenges.Add(1)
	return 407, "Proxy-Authenticate: " + s.auth.Challenge(acc.hashes().Algorithm(), stale) + "\r\n"
}

// otherSourceWarning tells a peer why its request is refused.
const otherSourceWarning = "Warning: 399 soniq \"this address is not a party of the dialog\"\r\n"

// finish handles the request if status is 0, otherwise it refuses it.
func (r *strayRequest) finish(status int, extra string) {
	l, s := r.leg, r.leg.shard
	if status == 0 && l.state == legTerminated {
		status = 481
	}
	switch {
	case r.tx != nil && s.serverTxs[r.tx.key] != r.tx:
	case status == 0:
		r.resume()
	case r.tx != nil:
		l.refused = l.refused || r.tx.invite || r.claim.method == "UPDATE"
		r.noteRefusal(status)
		s.buf = append(sipmsg.AppendStatus(s.buf[:0], status, ""), r.responseHead...)
		s.buf = sipmsg.AppendBody(append(s.buf, extra...), "", nil)
		r.tx.respond(s, status, s.buf)
	}
}

// resume handles a request that is the peer's.
func (r *strayRequest) resume() {
	l, s := r.leg, r.leg.shard
	m := &s.msg
	if m.parse(r.raw, r.flow) != nil || m.ReadMandatory() != nil {
		return
	}
	if r.tx == nil {
		l.handleACK(m)
		return
	}
	s.dropServer(r.tx)
	l.handleRequest(m)
}

// noteRefusal logs the first refusal of a dialog. The operator sees by it which address of a carrier is not listed.
func (r *strayRequest) noteRefusal(status int) {
	if l := r.leg; status == 403 && !l.noted {
		l.noted = true
		l.shard.srv.config.Logger.Warn("sip: a request inside a call came from an address that is not a party of it",
			"method", r.claim.method, "source", r.claim.source, "call_id", l.callID, "trunk", l.trunk)
	}
}

// handleRequest handles a request of the peer inside the dialog.
func (l *Leg) handleRequest(m *received) {
	s := l.shard
	last := l.peerSeq(m.From.Tag)
	if m.CSeq < *last {
		s.reply(m, 500, "") // RFC 3261 §12.2.2: out of order
		return
	}
	*last = m.CSeq
	if l.symmetric {
		l.flow = m.flow // the phone's NAT may have given it a new port
	}
	if l.state == legEnding || l.state == legCanceling {
		l.requestWhileEnding(m)
		return
	}
	switch m.Method {
	case "BYE":
		l.handleBye(m)
	case "INVITE":
		l.handleReinvite(m)
	case "INFO":
		l.handleInfo(m)
	case "REFER":
		l.handleRefer(m)
	case "NOTIFY":
		l.handleNotify(m)
	case "UPDATE":
		l.handleUpdate(m)
	case "MESSAGE":
		l.handleText(m)
	case "PRACK":
		l.handlePRACK(m)
	default: // OPTIONS
		s.answerOptions(m)
	}
}

// handleBye handles a BYE. A caller may send one before our answer too, a callee may not (RFC 3261 §15, §15.1.2).
func (l *Leg) handleBye(m *received) {
	s := l.shard
	if l.state == legRinging && !l.inbound {
		s.reply(m, 481, "")
		return
	}
	s.reply(m, 200, "")
	if l.state == legRinging {
		l.respondToInvite(487, "", nil)
	}
	q850, text := parseReason(m.Get(sipmsg.FieldReason))
	l.terminate(Bye{Reason: text, Q850: q850})
}

// requestWhileEnding answers a request that crosses our BYE or CANCEL: 200 for a BYE, otherwise 481.
func (l *Leg) requestWhileEnding(m *received) {
	if m.Method == "BYE" {
		l.shard.reply(m, 200, "")
		return
	}
	l.shard.reply(m, 481, "")
}

// parseReason parses a Reason field (RFC 3326).
func parseReason(s string) (q850 int, text string) {
	for s != "" {
		var r string
		r, s = sipmsg.CutElement(s)
		protocol, params, _ := strings.Cut(r, ";")
		cause, _ := sipmsg.ParamOf(";"+params, "cause")
		if t, ok := sipmsg.ParamOf(";"+params, "text"); ok && text == "" {
			text = sipmsg.Readable(t)
		}
		if strings.EqualFold(strings.TrimSpace(protocol), "Q.850") {
			q850, _ = strconv.Atoi(cause)
		}
	}
	return q850, text
}

// deferResponse creates the transaction of a request that the switch answers later. The returned function answers it
// once, on the shard.
func (l *Leg) deferResponse(m *received) func(status int, extra string) {
	s := l.shard
	tx := s.newServerTx(m, s.txKey(m, m.Method))
	tx.setResponseDeadline(s)
	head := m.AppendHead(nil, "")
	return func(status int, extra string) {
		s.buf = append(sipmsg.AppendStatus(s.buf[:0], status, ""), head...)
		s.buf = sipmsg.AppendBody(append(s.buf, extra...), "", nil)
		tx.respond(s, status, s.buf)
	}
}

func (l *Leg) handleInfo(m *received) {
	if l.state == legRinging {
		l.shard.reply(m, 481, "")
		return
	}
	if m.Body == "" { // RFC 2976 §2.2: 200 to an INFO without a body; peers send it as a keep-alive
		l.shard.reply(m, 200, "")
		return
	}
	respond := l.deferResponse(m)
	l.emit(Info{ContentType: m.Get(sipmsg.FieldContentType), Body: []byte(m.Body), respond: func(status int) {
		l.enqueue(func() { respond(status, "") })
	}})
}
