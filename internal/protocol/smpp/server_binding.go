package smpp

import (
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// binding is the connection of a client to the server.
type binding struct {
	server       *Server
	session      *session
	pacer        pacer
	boundAccount atomic.Pointer[Account] // nil before the bind
	mode         Command                 // set before boundAccount
	ready        chan struct{}           // closed when the bind response is sent
	limiter      *rate.Limiter           // shared by the binds of an account; nil before the bind
	id           string
}

func (b *binding) account() string {
	if a := b.boundAccount.Load(); a != nil {
		return a.ID
	}
	return ""
}

// admit returns the status with which a request is refused at once: not bound, or throttled. OK accepts it.
func (b *binding) admit(p PDU) Status {
	a := b.boundAccount.Load()
	switch {
	case a == nil && !p.Command.isBind():
		return BadBindState
	case a == nil || p.Command != SubmitSM && p.Command != DataSM:
		return OK
	}
	if a.MaxPending > 0 && len(b.session.inbox) >= a.MaxPending || !b.limiter.Allow() {
		return Throttled
	}
	return OK
}

// handle handles a request of a client.
func (b *binding) handle(ctx context.Context, p PDU) reply {
	if p.Command.isBind() {
		return b.login(ctx, p)
	}
	if b.boundAccount.Load() == nil {
		return reply{status: BadBindState}
	}
	switch body := p.Body.(type) {
	case *Message:
		return b.handleMessage(ctx, p.Command, body)
	case *Query:
		return b.query(ctx, body)
	case *Cancel:
		return reply{status: CancelFailed}
	case *Replace:
		return reply{status: ReplaceFailed}
	}
	return reply{status: BadCommand}
}

func (b *binding) handleMessage(ctx context.Context, c Command, m *Message) reply {
	switch {
	case c == DeliverSM:
		return reply{status: BadCommand}
	case b.mode == BindReceiver:
		return reply{status: BadBindState}
	case m.Destination.Digits == "":
		return reply{status: BadDestination}
	}
	id, status := b.server.receiver.receive(ctx, b.account(), b.id, m)
	if status != OK {
		return reply{status: status}
	}
	return reply{body: &MessageResponse{MessageID: id}}
}

func (b *binding) query(ctx context.Context, q *Query) reply {
	a, err := b.server.config.Handler.Query(ctx, b.account(), q.MessageID)
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
	if b.boundAccount.Load() != nil {
		return reply{status: AlreadyBound}
	}
	c, asked := b.server.config, p.Body.(*Bind)
	ctx, cancel := context.WithTimeout(ctx, c.LoginTimeout)
	defer cancel()
	remote := b.session.conn.RemoteAddr()
	a, err := c.Handler.Authenticate(ctx, Login{asked.SystemID, asked.Password, asked.SystemType, p.Command, remote})
	if err != nil {
		c.Log.Warn("smpp: bind refused", "system_id", asked.SystemID, "remote", remote, "error", err)
		return b.refuseBind(BindFailed)
	}
	b.mode = p.Command
	if !b.server.add(b, a) {
		return b.refuseBind(AlreadyBound)
	}
	b.boundAccount.Store(&a)
	answer := &BindResponse{SystemID: c.SystemID}
	if asked.InterfaceVersion >= version {
		answer.TLVs = TLVs{octetTLV(TagInterfaceVersion, version)}
	}
	return reply{body: answer, afterPost: func(*pendingWrite) {
		close(b.ready)
		if c.Binds != nil && b.mode != BindTransmitter {
			c.Binds.Bound(a.ID)
		}
	}}
}

func (b *binding) refuseBind(s Status) reply {
	return reply{status: s, afterPost: func(o *pendingWrite) { b.session.endAfter(o, s) }}
}
