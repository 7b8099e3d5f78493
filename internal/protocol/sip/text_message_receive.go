package sip

import (
	"context"
	"net/netip"
	"runtime/debug"
)

// MESSAGE requests received (RFC 3428).

// Message is a MESSAGE request (RFC 3428) of an account or a trunk. Respond must be called once, from any goroutine,
// within 30 s. 202 accepts the message.
type Message struct {
	CallID      string
	CSeq        uint32
	RequestURI  URI
	From, To    Address
	ContentType string
	Body        []byte
	Source      netip.AddrPort
	Transport   Transport
	Account     string // id of the authenticated account, or
	TrunkID     string // id of the source's trunk
	Leg         *Leg   // the dialog that contains it; Account and TrunkID are empty then
	Respond     func(status int)
}

// handleText hands a MESSAGE outside dialogs to a goroutine that authenticates its sender.
func (s *shard) handleText(m *message) {
	msg, respond := s.newMessage(m)
	who := &Inbound{From: msg.From, Source: msg.Source, Transport: msg.Transport, authorizations: m.authorizations(), conn: m.flow.conn}
	s.srv.spawn(func() { s.srv.authenticateText(msg, who, respond) })
}

// handleText hands a MESSAGE inside the dialog to Config.OnMessage.
func (l *Leg) handleText(m *message) {
	s := l.shard
	if s.srv.lookups.Load() >= int64(s.srv.limits.Lookups) {
		s.reply(m, 503, s.srv.retryAfter())
		return
	}
	msg, _ := s.newMessage(m)
	msg.Leg = l
	s.srv.spawn(func() { s.srv.deliverText(msg) })
}

func (s *shard) newMessage(m *message) (*Message, func(status int, extra string)) {
	tx := s.newServerTx(m, s.txKey(m, m.method))
	tx.setResponseDeadline(s)
	head := m.appendHead(nil, s.srv.statelessTag(m))
	respond := func(status int, extra string) {
		s.enqueue(func(*shard) {
			s.buf = append(appendStatus(s.buf[:0], status, ""), head...)
			s.buf = appendBody(append(s.buf, extra...), "", nil)
			tx.respond(s, status, s.buf)
		})
	}
	msg := &Message{
		CallID: m.callID, CSeq: m.cseq, From: m.from.addr.address(), To: m.to.addr.address(),
		ContentType: m.get(fContentType), Body: []byte(m.body), Source: m.flow.addr, Transport: m.flow.transport(),
		Respond: func(status int) { respond(status, "") },
	}
	msg.RequestURI, _ = ParseURI(m.uri)
	return msg, respond
}

// authenticateText accepts messages of trunks and authenticated accounts, and challenges all others.
func (s *Server) authenticateText(msg *Message, who *Inbound, respond func(int, string)) {
	defer s.recoverText(msg)
	if id, ok := s.trunkOf(who); ok {
		msg.TrunkID = id
		s.config.OnMessage(s.ctx, msg)
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, lookupTimeout)
	defer cancel()
	acc, stale, ok, err := s.authenticate(ctx, "MESSAGE", msg.From.URI.User, who.authorizations, msg.Source.Addr(), who.conn)
	switch {
	case err != nil:
		s.logFailure("look up the account of a MESSAGE", err)
		respond(503, s.retryAfter())
	case !ok:
		if len(who.authorizations) == 0 {
			s.countFutileRequest(msg.Source.Addr(), msg.Transport)
		}
		s.stats.challenges.Add(1)
		respond(407, "Proxy-Authenticate: "+s.auth.challenge(acc.digestAlgorithm(), stale)+"\r\n")
	case acc.Barred:
		respond(403, "")
	default:
		msg.Account = acc.ID
		s.config.OnMessage(s.ctx, msg)
	}
}

func (s *Server) deliverText(msg *Message) {
	defer s.recoverText(msg)
	s.config.OnMessage(s.ctx, msg)
}

func (s *Server) recoverText(msg *Message) {
	if r := recover(); r != nil {
		s.logPanic(r, debug.Stack())
		msg.Respond(500)
	}
}
