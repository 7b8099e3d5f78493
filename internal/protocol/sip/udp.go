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
type socket struct {
	conn *net.UDPConn
	addr netip.AddrPort
}

// arrivalWindow holds the arrival times of the last messages of a reader. Low load means fewer than len(arrivals)
// messages within lowLoadWindow.
type calm struct {
	last [16]time.Duration // arrival times
	n    int
}

const calmFor = 16 * time.Millisecond

// noteArrival records a message and reports whether the load is low.
func (c *calm) came(now time.Duration) bool {
	before := c.last[c.n%len(c.last)]
	c.last[c.n%len(c.last)] = now
	c.n++
	return c.n <= len(c.last) || now-before > calmFor
}

// readLoop is the only reader of the socket, so that order is kept. When no further datagram waits, it processes the
// shards' queues itself.
func (k *socket) read(s *Server) {
	buf := make([]byte, 65536)
	rest := newRemainder(k.conn)
	var c calm
	var g gathering
	for {
		asked := s.clock()
		n, from, err := k.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		now := s.clock()
		little := c.came(now)
		var to *shard
		if err == nil && n > 0 { // an ICMP error of some peer must not end the loop
			to = k.take(s, buf[:n], from)
		}
		switch full := g.add(to); {
		case len(g.due) == 0:
		case !rest.more(now - asked):
			g.each(func(sh *shard) { sh.help(little) })
		case full:
			g.each((*shard).ring)
		}
	}
}

// dispatchDatagram queues a datagram at its shard and returns that shard, or nil if nothing was queued.
func (k *socket) take(s *Server, b []byte, from netip.AddrPort) *shard {
	f := flow{addr: unmapped(from), sock: k}
	if isSTUN(b) {
		s.keepAlive(f, b)
		return nil
	}
	return s.receive(string(b), f, false)
}

// receiveStream is receive for a connection. It blocks while the shard's queue is full.
func (s *Server) receiveOn(c *conn, raw string) {
	if sh := s.receive(raw, c.flow(), true); sh != nil {
		sh.ring()
	}
}

// receive passes one message to admission and queues it at its shard. It returns the shard, which the caller must
// wake, or nil if nothing was queued. With wait it blocks while the shard's queue is full.
func (s *Server) receive(raw string, f flow, wait bool) (to *shard) {
	defer func() {
		if r := recover(); r != nil {
			s.panicked(r, debug.Stack())
		}
	}()
	s.stats.received.Add(1)
	p, ok := peek(raw)
	if !ok {
		return nil // a keep-alive, or a message that cannot be answered
	}
	sh := s.shardOf(p.callID)
	now := s.clock()
	switch s.admit(sh, &p, f, now) {
	case dropIt:
		s.stats.dropped.Add(1)
		return nil
	case refuseIt:
		s.refuseEarly(raw, f)
		return nil
	}
	if s.config.Trace != nil {
		s.traced(f, p.callID, raw, false)
	}
	if !sh.push(item{raw: raw, flow: f, at: now, mark: p.mark}, wait) {
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
		p, _ := peek(raw)
		s.traced(f, p.callID, raw, true)
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
func (s *Server) socketFor(a netip.Addr) (best *socket) {
	for _, k := range s.sockets {
		if reaches(k.addr.Addr(), a) {
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
func reaches(local, peer netip.Addr) bool {
	if local.IsUnspecified() {
		return local.Is6() || peer.Is4()
	}
	return local.Is4() == peer.Is4() && local.IsLoopback() == peer.IsLoopback()
}

// flowTo returns the flow to exactly this address. For TCP and TLS it reuses the connection to that address or starts
// a new one. name is the name that a TLS peer must prove.
func (s *Server) to(t Transport, addr netip.AddrPort, name string) flow {
	if !t.stream() {
		return flow{addr: addr}
	}
	if t != TLS {
		name = ""
	}
	return flow{addr: addr, conn: s.streams.to(connKey{kind: t, addr: addr, name: name})}
}

// tcpFlowTo returns the TCP flow to exactly this address.
func (s *Server) connect(addr netip.AddrPort) flow { return s.to(TCP, addr, "") }

// reconnected returns f, with a new connection if its own is closed and was made by this server.
func (s *Server) again(f flow) flow {
	if f.conn == nil || f.conn.open() || !f.conn.ours {
		return f
	}
	return s.to(f.conn.key.kind, f.addr, f.conn.key.name)
}
