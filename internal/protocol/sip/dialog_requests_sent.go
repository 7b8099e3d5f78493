package sip

import (
	"math/rand/v2"
	"net/netip"

	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// Requests sent inside a dialog: route set, credentials, ACK.

// requestTemplate describes a request to be written inside a dialog, or the INVITE that starts one.
type requestTemplate struct {
	method         string
	seq            uint32
	flow           transport.Flow
	path           dialogRoute
	to             string // To value
	maxForwards    int
	extraFields    string   // header lines, each with its CRLF
	auth           string   // header lines with credentials
	answeredRealms []string // realms that this request has already answered
	contentType    string
	body           []byte
}

// appendRequest appends the request and returns its branch.
func (l *Leg) appendRequest(b []byte, o *requestTemplate) ([]byte, uint64) {
	branch := rand.Uint64()
	uri, routes := o.path.uriAndRoutes()
	b = append(append(append(b, o.method...), ' '), uri...)
	b = append(b, " SIP/2.0\r\n"...)
	b = l.shard.srv.appendVia(b, o.flow, branch)
	for _, r := range routes {
		b = sipmsg.AppendField(b, "Route", r)
	}
	if o.maxForwards <= 0 {
		o.maxForwards = 70
	}
	b = sipmsg.AppendInt(append(b, "Max-Forwards: "...), int64(o.maxForwards))
	b = append(b, "\r\n"...)
	b = sipmsg.AppendField(b, "From", l.local)
	b = sipmsg.AppendField(b, "To", o.to)
	b = sipmsg.AppendField(b, "Call-ID", l.callID)
	b = sipmsg.AppendInt(append(b, "CSeq: "...), int64(o.seq))
	b = append(append(append(b, ' '), o.method...), "\r\n"...)
	switch o.method {
	case "INVITE", "REFER", "NOTIFY", "UPDATE": // RFC 3261 §12.1.1, RFC 3311 §5.1, RFC 6665 §4.2.2
		b = sipmsg.AppendField(b, "Contact", l.contact)
	}
	b = append(append(b, o.extraFields...), o.auth...)
	return sipmsg.AppendBody(b, o.contentType, o.body), branch
}

// uriAndRoutes returns the request URI and the Route values of a request on this route.
func (p dialogRoute) uriAndRoutes() (uri string, routes []string) {
	if len(p.routes) == 0 || isLooseRoute(p.routes[0]) {
		return p.target, p.routes
	}
	// RFC 3261 §12.2.1.1: a strict router takes the request URI.
	a, _ := sipmsg.ReadAddress(p.routes[0])
	return a.URI, append(append([]string(nil), p.routes[1:]...), "<"+p.target+">")
}

// appendVia writes our Via line.
func (s *Server) appendVia(b []byte, f transport.Flow, branch uint64) []byte {
	b = append(append(b, "Via: SIP/2.0/"...), f.ViaName()...)
	b = append(append(b, ' '), s.layer.SentBy(f)...)
	b = sipmsg.AppendBranch(append(b, ";branch="...), branch)
	return append(b, ";rport\r\n"...)
}

// isLooseRoute reports whether a route is a loose router (RFC 3261 §16.12).
func isLooseRoute(route string) bool {
	a, err := sipmsg.ReadAddress(route)
	if err != nil {
		return true
	}
	u, err := sipmsg.ParseURI(a.URI)
	_, lr := u.Param("lr")
	return err != nil || lr
}

// sendInDialog sends a request inside the dialog. Challenges are answered if the leg has credentials.
func (l *Leg) sendInDialog(o requestTemplate, on responseFunc) *clientTx {
	s := l.shard
	l.localSeq++
	o.seq = l.localSeq
	if o.to == "" {
		o.path, o.to = l.route, l.remote
	}
	o.flow = l.nextFlow(o.path)
	o.auth = l.digestClient.AuthorizationFields(o.method, o.path.target, o.body)
	if o.method == "INVITE" {
		l.inviteAuth = o.auth
	}
	b, branch := l.appendRequest(nil, &o)
	return s.startClientTx(clientKey{branch, txKindOf(o.method)}, o.flow, b, func(m *received, status int) {
		if m != nil && (status == 401 || status == 407) && l.digestClient.AcceptInDialog(&m.Message, &o.answeredRealms) {
			l.resendInDialog(o, on)
			return
		}
		on(m, status)
	})
}

// resendInDialog sends a challenged request again. For a re-INVITE it updates reinviteTx.
func (l *Leg) resendInDialog(o requestTemplate, on responseFunc) {
	tx := l.sendInDialog(o, on)
	if o.method == "INVITE" && l.reinviteTx != nil {
		l.reinviteTx = tx
	}
}

// sendAck acknowledges a 2xx (RFC 3261 §13.2.2.4) and keeps the ACK for repeated 2xx.
func (l *Leg) sendAck(seq uint32, sdp []byte) {
	o := requestTemplate{method: "ACK", seq: seq, path: l.route, to: l.remote, contentType: sipmsg.SDPType, body: sdp, auth: l.inviteAuth}
	o.flow = l.nextFlow(l.route)
	l.lastACK, _ = l.appendRequest(nil, &o)
	l.ackSeq = seq
	l.shard.sender.Send(o.flow, l.lastACK)
}

// ackAndHangUp acknowledges an unwanted 2xx and hangs up its dialog (RFC 3261 §9.1, §13.2.2.4).
func (l *Leg) ackAndHangUp(m *received) {
	p := routeFromResponse(m, l.route.target)
	o := requestTemplate{method: "ACK", seq: m.CSeq, path: p, to: m.To.Value, flow: l.nextFlow(p)}
	b, _ := l.appendRequest(nil, &o)
	l.shard.sender.Send(o.flow, b)
	o.method, o.seq = "BYE", m.CSeq+1
	b, branch := l.appendRequest(nil, &o)
	l.shard.startClientTx(clientKey{branch, nonInviteTx}, o.flow, b, func(*received, int) {})
}

// routeFromResponse returns the route set and target that a response gives to a caller: Record-Route in reverse order
// (RFC 3261 §12.1.2).
func routeFromResponse(m *received, target string) dialogRoute {
	p := dialogRoute{target: target, routes: m.List(sipmsg.FieldRecordRoute)}
	for i, j := 0, len(p.routes)-1; i < j; i, j = i+1, j-1 {
		p.routes[i], p.routes[j] = p.routes[j], p.routes[i]
	}
	if t := contactURI(&m.Message); t != "" {
		p.target = t
	}
	return p
}

// contactURI returns the first Contact's URI if it is usable as a request URI, otherwise "".
func contactURI(m *sipmsg.Message) string {
	first, _ := sipmsg.CutElement(m.Get(sipmsg.FieldContact))
	a, err := sipmsg.ReadAddress(first)
	if err != nil || a.URI == "*" {
		return ""
	}
	u, err := sipmsg.ParseURI(a.URI)
	if err != nil || u.Headers() != "" {
		return u.String()
	}
	return a.URI
}

func isPrivateAddr(a netip.Addr) bool {
	return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast()
}
