package sip

import (
	"errors"
	"net"
	"net/netip"
	"runtime/debug"
	"time"
)

// socket is one UDP socket and where it is bound.
type socket struct {
	conn *net.UDPConn
	addr netip.AddrPort
}

// calm is what a reader knows of the messages before: fewer than so many in so long a time are little.
type calm struct {
	last [16]time.Duration // when they came
	n    int
}

const calmFor = 16 * time.Millisecond

// came notes a message, and tells whether there is little to do.
func (c *calm) came(now time.Duration) bool {
	before := c.last[c.n%len(c.last)]
	c.last[c.n%len(c.last)] = now
	c.n++
	return c.n <= len(c.last) || now-before > calmFor
}

// read is the one reader of the socket, so that order is kept. When no more is there it has time, and does the shards' work itself.
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
		if err == nil && n > 0 { // an ICMP error of some peer is no reason to stop
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

// take brings a datagram to its shard, which is returned unless it got nothing.
func (k *socket) take(s *Server, b []byte, from netip.AddrPort) *shard {
	f := flow{addr: unmapped(from), sock: k}
	if isSTUN(b) {
		s.keepAlive(f, b)
		return nil
	}
	return s.receive(string(b), f, false)
}

// receiveOn is receive for a connection, which is held back while the shard is full.
func (s *Server) receiveOn(c *conn, raw string) {
	if sh := s.receive(raw, c.flow(), true); sh != nil {
		sh.ring()
	}
}

// receive takes one message off the wire to its shard, unless admission
// refuses it, and returns the shard, which is not told yet. With wait it blocks while the shard is full.
func (s *Server) receive(raw string, f flow, wait bool) (to *shard) {
	defer func() {
		if r := recover(); r != nil {
			s.panicked(r, debug.Stack())
		}
	}()
	s.stats.received.Add(1)
	p, ok := peek(raw)
	if !ok {
		return nil // keep-alive, or nothing we could answer
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
		s.stats.dropped.Add(1) // UDP peers send again
		return nil
	}
	return sh
}

// send puts a message on the wire; UDP always from a listening socket.
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

// socketFor is the socket that reaches an address, or at least one of its
// family.
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

// reaches tells whether a socket bound to local can send to peer. One bound to
// loopback reaches this machine only.
func reaches(local, peer netip.Addr) bool {
	if local.IsUnspecified() {
		return local.Is6() || peer.Is4()
	}
	return local.Is4() == peer.Is4() && local.IsLoopback() == peer.IsLoopback()
}

// to is the flow to exactly this address, connected when there is none. name
// is what a TLS peer must prove to be.
func (s *Server) to(t Transport, addr netip.AddrPort, name string) flow {
	if !t.stream() {
		return flow{addr: addr}
	}
	if t != TLS {
		name = ""
	}
	return flow{addr: addr, conn: s.streams.to(connKey{kind: t, addr: addr, name: name})}
}

// connect is the TCP flow to exactly this address.
func (s *Server) connect(addr netip.AddrPort) flow { return s.to(TCP, addr, "") }

// again is f, connected anew when its connection is gone and was ours to make.
func (s *Server) again(f flow) flow {
	if f.conn == nil || f.conn.open() || !f.conn.ours {
		return f
	}
	return s.to(f.conn.key.kind, f.addr, f.conn.key.name)
}
