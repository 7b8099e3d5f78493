package sip

import (
	"context"
	"net/netip"
	"runtime/debug"
	"time"

	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// Receiving messages: admission, trace, the shard they are queued at; connections that closed.

// upper is the server as the layers below it see it: the transport layer and the Locator.
type upper struct{ srv *Server }

func (u upper) Elapsed() time.Duration { return u.srv.clock() }

func (u upper) Go(lookup func(ctx context.Context)) { u.srv.workers.Go(func() { lookup(u.srv.ctx) }) }

func (u upper) SendsTo(a netip.Addr) bool { return u.srv.layer.SocketFor(a) != nil }

func (u upper) IsDraining() bool { return u.srv.draining.Load() }

func (u upper) LogPanic(r any, stack []byte) { u.srv.logPanic(r, stack) }

func (u upper) CountFutileRequest(a netip.Addr, t sipmsg.Transport) { u.srv.countFutileRequest(a, t) }

func (u upper) Receive(raw string, f transport.Flow, wait bool) transport.Queue {
	if sh := u.srv.receive(raw, f, wait); sh != nil {
		return sh
	}
	return nil
}

func (u upper) ReceiveBroken(raw string, c *transport.Conn) { u.srv.receiveBroken(raw, c) }

func (u upper) DialFailed(t sipmsg.Transport, a netip.AddrPort) {
	u.srv.locator.MarkFailed(t, a, u.srv.clock())
}

// ConnClosed fails the transactions that wait for a connection. The registration of a browser over it ends unless it comes back.
func (u upper) ConnClosed(c *transport.Conn) {
	u.srv.awaitBrowser(c)
	for _, sh := range u.srv.shards {
		sh.enqueue(func(s *shard) { s.failConnTxs(c) })
	}
}

func (u upper) Trace(e transport.TraceEntry) {
	e.At = u.srv.config.Now()
	u.srv.config.Tracer.Trace(e)
}

// receive passes one message to admission and queues it at its shard. It returns the shard, which the caller must
// wake, or nil if nothing was queued. With wait it blocks while the shard's queue is full.
func (s *Server) receive(raw string, f transport.Flow, wait bool) (to *shard) {
	defer func() {
		if r := recover(); r != nil {
			s.logPanic(r, debug.Stack())
		}
	}()
	s.layer.Stats.Received.Add(1)
	p, ok := sipmsg.PeekMessage(raw)
	if !ok {
		return nil // a keep-alive, or a message that cannot be answered
	}
	f.Client = s.clientOfEdge(raw, f)
	sh := s.shardOf(p.CallID)
	now := s.clock()
	verdict, mark := s.admit(sh, &p, f, now)
	switch verdict {
	case dropMessage:
		s.layer.Stats.Dropped.Add(1)
		return nil
	case refuseMessage:
		s.refuseEarly(raw, f)
		return nil
	case refuseBanned:
		s.layer.Stats.Dropped.Add(1)
		s.answerEarly(raw, f, 403, bannedWarning)
		return nil
	}
	s.layer.TraceMessage(f, p.CallID, raw, false)
	if !sh.pushMessage(queueItem{raw: raw, flow: f, at: now, admissionKey: mark}, wait) {
		s.layer.Stats.Dropped.Add(1) // UDP peers retransmit
		return nil
	}
	return sh
}

// receiveBroken answers 400 to a request of unknown length. The caller closes its connection afterwards.
func (s *Server) receiveBroken(raw string, c *transport.Conn) {
	s.layer.Stats.Received.Add(1)
	s.stats.parseErrors.Add(1)
	s.countFutileRequest(c.Key.Addr.Addr(), c.Key.Transport)
	var m received
	if m.parse(raw, c.Flow()) != nil || m.Method == "" || m.Method == "ACK" || m.ReadVia() != nil {
		return
	}
	m.ReadMandatory()
	b := m.AppendResponse(nil, 400, "Bad Content-Length", s.statelessTag(&m), "")
	c.WriteNow(b)
}

// failConnTxs fails the transactions of a closed connection.
func (s *shard) failConnTxs(c *transport.Conn) {
	for tx := range s.txsByConn[c] {
		tx.connectionLost(s)
	}
}
