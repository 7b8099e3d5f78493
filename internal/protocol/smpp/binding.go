package smpp

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// binding is the connection of a client to the server.
type binding struct {
	server  *Server
	session *session
	pacer   pacer
	who     atomic.Pointer[Account] // nil before the bind
	mode    Command                 // set before boundAccount
	ready   chan struct{}           // closed when the bind response is sent
	tokens  *tokens                 // shared by the binds of an account
	name    string
}

func (b *binding) account() string {
	if a := b.who.Load(); a != nil {
		return a.ID
	}
	return ""
}

// admit returns the status with which a request is refused at once: not bound, or throttled. OK accepts it.
func (b *binding) admit(p PDU) Status {
	a := b.who.Load()
	switch {
	case a == nil && !p.Command.binds():
		return BadBindState
	case a == nil || p.Command != SubmitSM && p.Command != DataSM:
		return OK
	}
	if a.Waiting > 0 && len(b.session.inbox) >= a.Waiting || !b.tokens.take(time.Now()) {
		return Throttled
	}
	return OK
}

// handle handles a request of a client.
func (b *binding) handle(ctx context.Context, p PDU) reply {
	if p.Command.binds() {
		return b.login(ctx, p)
	}
	if b.who.Load() == nil {
		return reply{status: BadBindState}
	}
	switch body := p.Body.(type) {
	case *Message:
		return b.take(ctx, p.Command, body)
	case *Query:
		return b.query(ctx, body)
	case *Cancel:
		return reply{status: CancelFailed}
	case *Replace:
		return reply{status: ReplaceFailed}
	}
	return reply{status: BadCommand}
}

func (b *binding) take(ctx context.Context, c Command, m *Message) reply {
	switch {
	case c == DeliverSM:
		return reply{status: BadCommand}
	case b.mode == BindReceiver:
		return reply{status: BadBindState}
	case m.Destination.Digits == "":
		return reply{status: BadDestination}
	}
	id, status := b.server.receiver.take(ctx, b.account(), b.name, m)
	if status != OK {
		return reply{status: status}
	}
	return reply{body: &MessageAnswer{MessageID: id}}
}

func (b *binding) query(ctx context.Context, q *Query) reply {
	if b.server.config.Query == nil {
		return reply{status: QueryFailed}
	}
	a, err := b.server.config.Query(ctx, b.account(), q.MessageID)
	var s Status
	switch {
	case errors.As(err, &s) && s != OK:
		return reply{status: s}
	case err != nil:
		return reply{status: QueryFailed}
	}
	a.MessageID = q.MessageID
	return reply{body: &a}
}

// login handles a bind request. A refused client is disconnected.
func (b *binding) login(ctx context.Context, p PDU) reply {
	if b.who.Load() != nil {
		return reply{status: AlreadyBound}
	}
	c, asked := b.server.config, p.Body.(*Bind)
	ctx, cancel := context.WithTimeout(ctx, c.Login)
	defer cancel()
	remote := b.session.conn.RemoteAddr()
	a, err := c.Authenticate(ctx, Login{asked.SystemID, asked.Password, asked.SystemType, p.Command, remote})
	if err != nil {
		c.Log.Warn("smpp: bind refused", "system_id", asked.SystemID, "remote", remote, "error", err)
		return b.turnAway(BindFailed)
	}
	b.mode = p.Command
	if !b.server.add(b, a) {
		return b.turnAway(AlreadyBound)
	}
	b.who.Store(&a)
	answer := &BindAnswer{SystemID: c.SystemID}
	if asked.InterfaceVersion >= version {
		answer.TLVs = TLVs{octetTLV(TagInterfaceVersion, version)}
	}
	return reply{body: answer, then: func(*outgoing) {
		close(b.ready)
		if c.Joined != nil && b.mode != BindTransmitter {
			c.Joined(a.ID)
		}
	}}
}

func (b *binding) turnAway(s Status) reply {
	return reply{status: s, then: func(o *outgoing) { b.session.farewell(o, s) }}
}
