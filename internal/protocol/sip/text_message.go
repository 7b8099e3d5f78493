package sip

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime/debug"

	"soniq/internal/protocol/sip/sipmsg"
)

// MESSAGE requests, received and sent (RFC 3428).

// Message is a MESSAGE request (RFC 3428) of an account or a trunk. Respond must be called once, from any goroutine,
// within 30 s. 202 accepts the message.
type Message struct {
	CallID      string
	CSeq        uint32
	RequestURI  sipmsg.URI
	From, To    sipmsg.Address
	ContentType string
	Body        []byte
	Source      netip.AddrPort
	Transport   sipmsg.Transport
	Account     string // id of the authenticated account, or
	TrunkID     string // id of the source's trunk
	Leg         *Leg   // the dialog that contains it; Account and TrunkID are empty then
	respond     func(status int)
}

// Respond answers the request.
func (m *Message) Respond(status int) { m.respond(status) }

// handleText hands a MESSAGE outside dialogs to a goroutine that authenticates its sender.
func (s *shard) handleText(m *received) {
	msg, respond := s.newMessage(m)
	who := &Inbound{From: msg.From, RequestURI: msg.RequestURI, Source: msg.Source, Transport: msg.Transport,
		authorizations: m.Authorizations(), conn: m.flow.Conn, viaProxy: m.viaProxy()}
	s.srv.spawn(func() { s.srv.authenticateText(msg, who, respond) })
}

// handleText hands a MESSAGE inside the dialog to Config.OnMessage.
func (l *Leg) handleText(m *received) {
	s := l.shard
	if s.srv.lookups.Load() >= int64(s.srv.limits.Lookups) {
		s.reply(m, 503, s.srv.retryAfter())
		return
	}
	msg, _ := s.newMessage(m)
	msg.Leg = l
	s.srv.spawn(func() { s.srv.deliverText(msg) })
}

func (s *shard) newMessage(m *received) (*Message, func(status int, extra string)) {
	tx := s.newServerTx(m, s.txKey(m, m.Method))
	tx.setResponseDeadline(s)
	head := m.AppendHead(nil, s.srv.statelessTag(m))
	respond := func(status int, extra string) {
		s.enqueue(func(*shard) {
			s.buf = append(sipmsg.AppendStatus(s.buf[:0], status, ""), head...)
			s.buf = sipmsg.AppendBody(append(s.buf, extra...), "", nil)
			tx.respond(s, status, s.buf)
		})
	}
	msg := &Message{
		CallID: m.CallID, CSeq: m.CSeq, From: m.From.Addr.Address(), To: m.To.Addr.Address(),
		ContentType: m.Get(sipmsg.FieldContentType), Body: []byte(m.Body), Source: m.flow.Source(), Transport: m.flow.Transport(),
		respond: func(status int) { respond(status, "") },
	}
	msg.RequestURI, _ = sipmsg.ParseURI(m.URI)
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
	acc, stale, ok, err := s.authenticate(ctx, who.claim("MESSAGE"))
	switch {
	case errors.Is(err, errOtherURI):
		respond(400, otherURIWarning)
	case err != nil:
		s.logFailure("look up the account of a MESSAGE", err)
		respond(503, s.retryAfter())
	case !ok:
		if len(who.authorizations) == 0 {
			s.countFutileRequest(msg.Source.Addr(), msg.Transport)
		}
		s.stats.challenges.Add(1)
		respond(407, "Proxy-Authenticate: "+s.auth.Challenge(acc.hashes().Algorithm(), stale)+"\r\n")
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

// OutgoingMessage is a MESSAGE to send to a registered phone (RFC 3428).
type OutgoingMessage struct {
	Binding  Binding
	From, To sipmsg.Address // empty hosts mean our own address
	CallID   string         // generated if empty
	Body     []byte         // UTF-8
}

// SendMessage sends a MESSAGE and returns the status of its final response. A *StatusError means that there was no
// response: with Unsent the request never left, otherwise the phone may have the message. Any other error leaves that
// open as well.
func (s *Server) SendMessage(ctx context.Context, t OutgoingMessage) (status int, err error) {
	u, err := sipmsg.ParseURI(t.Binding.Contact)
	if err != nil {
		return 0, fmt.Errorf("sip: message %s: %w", t.Binding.Contact, err)
	}
	f := s.bindingFlow(&t.Binding)
	if t.CallID == "" {
		t.CallID = sipmsg.NewCallID()
	}
	e := &outOfDialogRequest{method: "MESSAGE", uri: u.String(), callID: t.CallID, seq: 1, flow: f, contentType: "text/plain;charset=UTF-8",
		body: t.Body}
	from, to := t.From, t.To
	if from.URI.Host == "" {
		from.URI.Host = s.layer.PublicHost()
	}
	if to.URI.Host == "" {
		to.URI.Host = s.layer.PublicHost()
	}
	e.from, e.to = string(from.AppendTo(nil))+";tag="+sipmsg.NewTag(), string(to.AppendTo(nil))
	for _, p := range t.Binding.Path {
		e.extraFields += "Route: <" + p + ">\r\n"
	}
	res, err := s.sendOutOfDialog(ctx, e)
	if err != nil {
		return 0, fmt.Errorf("sip: message %s: %w", t.Binding.Contact, err)
	}
	if !res.fromPeer {
		return 0, &StatusError{Method: "MESSAGE", Status: res.status, Reason: res.reason, Unsent: res.status == 503}
	}
	return res.status, nil
}
