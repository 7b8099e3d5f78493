package sip

import (
	"errors"
	"net"
	"net/netip"
	"runtime/debug"
	"time"
)

// UDP: reading datagrams, low-load detection, choosing the socket and flow to send from.

// udpSocket is one UDP socket and its bound address.
type udpSocket struct {
	conn *net.UDPConn
	addr netip.AddrPort
}

// arrivalWindow holds the arrival times of the last messages of a reader. Low load means fewer than len(arrivals)
// messages within lowLoadWindow.
type arrivalWindow struct {
	arrivals [16]time.Duration // arrival times
	n        int
}

const lowLoadWindow = 16 * time.Millisecond

// noteArrival records a message and reports whether the load is low.
func (c *arrivalWindow) noteArrival(now time.Duration) bool {
	before := c.arrivals[c.n%len(c.arrivals)]
	c.arrivals[c.n%len(c.arrivals)] = now
	c.n++
	return c.n <= len(c.arrivals) || now-before > lowLoadWindow
}

// readLoop is the only reader of the socket, so that order is kept. When no further datagram waits, it processes the
// shards' queues itself.
func (k *udpSocket) readLoop(s *Server) {
	buf := make([]byte, 65536)
	rest := newPendingDatagrams(k.conn)
	var c arrivalWindow
	var g shardBatch
	for {
		asked := s.clock()
		n, from, err := k.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		now := s.clock()
		little := c.noteArrival(now)
		var to *shard
		if err == nil && n > 0 { // an ICMP error of some peer must not end the loop
			to = k.dispatchDatagram(s, buf[:n], from)
		}
		switch full := g.add(to); {
		case len(g.due) == 0:
		case !rest.more(now - asked):
			g.drain(func(sh *shard) { sh.runQueued(little) })
		case full:
			g.drain((*shard).signal)
		}
	}
}

// dispatchDatagram queues a datagram at its shard and returns that shard, or nil if nothing was queued.
func (k *udpSocket) dispatchDatagram(s *Server, b []byte, from netip.AddrPort) *shard {
	f := flow{addr: unmapAddrPort(from), sock: k}
	if isSTUN(b) {
		s.answerSTUN(f, b)
		return nil
	}
	return s.receive(string(b), f, false)
}

// receiveStream is receive for a connection. It blocks while the shard's queue is full.
func (s *Server) receiveStream(c *conn, raw string) {
	if sh := s.receive(raw, c.flow(), true); sh != nil {
		sh.signal()
	}
}

// receive passes one message to admission and queues it at its shard. It returns the shard, which the caller must
// wake, or nil if nothing was queued. With wait it blocks while the shard's queue is full.
func (s *Server) receive(raw string, f flow, wait bool) (to *shard) {
	defer func() {
		if r := recover(); r != nil {
			s.logPanic(r, debug.Stack())
		}
	}()
	s.stats.received.Add(1)
	p, ok := peekMessage(raw)
	if !ok {
		return nil // a keep-alive, or a message that cannot be answered
	}
	sh := s.shardOf(p.callID)
	now := s.clock()
	switch s.admit(sh, &p, f, now) {
	case dropMessage:
		s.stats.dropped.Add(1)
		return nil
	case refuseMessage:
		s.refuseEarly(raw, f)
		return nil
	}
	if s.config.Trace != nil {
		s.traceMessage(f, p.callID, raw, false)
	}
	if !sh.pushMessage(queueItem{raw: raw, flow: f, at: now, admissionKey: p.admissionKey}, wait) {
		s.stats.dropped.Add(1) // UDP peers retransmit
		return nil
	}
	return sh
}

// send writes a message to the network. UDP always leaves from a listening socket.
func (s *Server) send(f flow, b []byte) {
	s.stats.sent.Add(1)
	if s.config.Trace != nil {
		raw := string(b)
		p, _ := peekMessage(raw)
		s.traceMessage(f, p.callID, raw, true)
	}
	if f.conn != nil {
		f.conn.write(b)
		return
	}
	if f.sock == nil {
		f.sock = s.socketFor(f.addr.Addr())
	}
	if f.sock != nil {
		f.sock.conn.WriteToUDPAddrPort(b, f.addr)
	}
}

// socketFor returns the socket that reaches an address, or else one of the same family, or nil.
func (s *Server) socketFor(a netip.Addr) (best *udpSocket) {
	for _, k := range s.sockets {
		if canReach(k.addr.Addr(), a) {
			return k
		}
		if best == nil && k.addr.Addr().Is4() == a.Is4() {
			best = k
		}
	}
	return best
}

// canReach reports whether a socket bound to local can send to peer. A socket bound to loopback reaches this machine
// only.
func canReach(local, peer netip.Addr) bool {
	if local.IsUnspecified() {
		return local.Is6() || peer.Is4()
	}
	return local.Is4() == peer.Is4() && local.IsLoopback() == peer.IsLoopback()
}

// flowTo returns the flow to exactly this address. For TCP and TLS it reuses the connection to that address or starts
// a new one. name is the name that a TLS peer must prove.
func (s *Server) flowTo(t Transport, addr netip.AddrPort, name string) flow {
	if !t.isConnection() {
		return flow{addr: addr}
	}
	if t != TLS {
		name = ""
	}
	return flow{addr: addr, conn: s.conns.connTo(connKey{transport: t, addr: addr, name: name})}
}

// tcpFlowTo returns the TCP flow to exactly this address.
func (s *Server) tcpFlowTo(addr netip.AddrPort) flow { return s.flowTo(TCP, addr, "") }

// reconnected returns f, with a new connection if its own is closed and was made by this server.
func (s *Server) reconnected(f flow) flow {
	if f.conn == nil || f.conn.isOpen() || !f.conn.weConnected {
		return f
	}
	return s.flowTo(f.conn.key.transport, f.addr, f.conn.key.name)
}
