package transport

import (
	"errors"
	"net"
	"net/netip"
	"time"

	"soniq/internal/protocol/sip/sipmsg"
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
func (k *udpSocket) readLoop(l *Layer) {
	buf := make([]byte, 65536)
	rest := newPendingDatagrams(k.conn)
	var c arrivalWindow
	var g queueBatch
	for {
		asked := l.config.Host.Elapsed()
		n, from, err := k.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		now := l.config.Host.Elapsed()
		little := c.noteArrival(now)
		var to Queue
		if err == nil && n > 0 { // an ICMP error of some peer must not end the loop
			to = k.dispatchDatagram(l, buf[:n], from)
		}
		switch full := g.add(to); {
		case len(g.due) == 0:
		case !rest.more(now - asked):
			g.drain(func(q Queue) { q.RunQueued(little) })
		case full:
			g.drain(Queue.Signal)
		}
	}
}

// dispatchDatagram queues a datagram at its shard and returns that shard, or nil if nothing was queued.
func (k *udpSocket) dispatchDatagram(l *Layer, b []byte, from netip.AddrPort) Queue {
	f := Flow{Addr: unmapAddrPort(from), sock: k}
	if isSTUN(b) {
		l.answerSTUN(f, b)
		return nil
	}
	return l.config.Receiver.Receive(string(b), f, false)
}

// Send writes a message to the network. UDP always leaves from a listening socket.
func (s *Layer) Send(f Flow, b []byte) {
	s.Stats.Sent.Add(1)
	if s.config.Tracer != nil {
		raw := string(b)
		p, _ := sipmsg.PeekMessage(raw)
		s.TraceMessage(f, p.CallID, raw, true)
	}
	if f.Conn != nil {
		f.Conn.write(b)
		return
	}
	if f.sock == nil {
		f.sock = s.SocketFor(f.Addr.Addr())
	}
	if f.sock != nil {
		f.sock.conn.WriteToUDPAddrPort(b, f.Addr)
	}
}

// SocketFor returns the socket that reaches an address, or else one of the same family, or nil.
func (s *Layer) SocketFor(a netip.Addr) (best *udpSocket) {
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

// FlowTo returns the flow to exactly this address. For TCP and TLS it reuses the connection to that address or starts
// a new one. name is the name that a TLS peer must prove.
func (s *Layer) FlowTo(t sipmsg.Transport, addr netip.AddrPort, name string) Flow {
	if !t.IsConnection() {
		return Flow{Addr: addr}
	}
	if t != sipmsg.TLS {
		name = ""
	}
	return Flow{Addr: addr, Conn: s.conns.connTo(ConnKey{Transport: t, Addr: addr, Name: name})}
}

// TCPFlowTo returns the TCP flow to exactly this address.
func (s *Layer) TCPFlowTo(addr netip.AddrPort) Flow { return s.FlowTo(sipmsg.TCP, addr, "") }

// Reconnected returns f, with a new connection if its own is closed and was made by this server.
func (s *Layer) Reconnected(f Flow) Flow {
	if f.Conn == nil || f.Conn.IsOpen() || !f.Conn.WeConnected {
		return f
	}
	return s.FlowTo(f.Conn.Key.Transport, f.Addr, f.Conn.Key.Name)
}
