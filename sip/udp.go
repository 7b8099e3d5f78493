package sip

import (
	"errors"
	"net"
	"net/netip"
	"runtime/debug"
)

// readUDP is the one reader of the socket, so that order is kept.
func (s *Server) readUDP() {
	buf := make([]byte, 65536)
	for {
		n, from, err := s.udp.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n == 0 {
			continue // an ICMP error of some peer is no reason to stop
		}
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		s.receive(string(buf[:n]), flow{addr: from}, false)
	}
}

// receive takes one message off the wire to its shard, unless admission
// refuses it. With wait it blocks while the shard is full.
func (s *Server) receive(raw string, f flow, wait bool) {
	defer func() {
		if r := recover(); r != nil {
			s.panicked(r, debug.Stack())
		}
	}()
	s.stats.received.Add(1)
	p, ok := peek(raw)
	if !ok {
		return // keep-alive, or nothing we could answer
	}
	sh := s.shardOf(p.callID)
	now := s.clock()
	switch s.admit(sh, &p, f, now) {
	case dropIt:
		s.stats.dropped.Add(1)
		return
	case refuseIt:
		s.refuseEarly(raw, f)
		return
	}
	if !sh.push(item{raw: raw, flow: f, at: now, mark: p.mark}, wait) {
		s.stats.dropped.Add(1) // UDP peers send again
	}
}

// send puts a message on the wire; UDP always from the listening socket.
func (s *Server) send(f flow, b []byte) {
	s.stats.sent.Add(1)
	if f.conn != nil {
		f.conn.write(b)
		return
	}
	s.udp.WriteToUDPAddrPort(b, f.addr)
}

// connect is the TCP flow to exactly this address, dialled when there is none.
func (s *Server) connect(addr netip.AddrPort) flow {
	return flow{addr: addr, conn: s.tcp.to(addr)}
}
