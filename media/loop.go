package media

import (
	"net/netip"
	"sync/atomic"
)

// A packetLoop reads many sockets and hands each packet to the socket's
// receiver. There are two: raw epoll, one thread per loop (loop_epoll.go), and
// one goroutine per socket for other systems (loop_udp.go).
type packetLoop interface {
	// listen binds a UDP socket and begins to read it.
	listen(at netip.AddrPort, r receiver) (packetSocket, error)
	// close ends the loop and waits for it. Its sockets must be closed before.
	close()
}

// A packetSocket is one bound UDP socket.
type packetSocket interface {
	// send writes one datagram and never blocks; a packet the kernel cannot
	// take is lost, as on the wire. Calls must not overlap.
	send(b []byte, to netip.AddrPort) bool
	// close frees the port. No receive call is running when it returns, so it
	// must not be called from one.
	close()
}

// A receiver takes packets off a loop. Calls for one socket do not overlap.
type receiver interface {
	// receive may change b and must not keep it. now is the engine's clock in ns.
	receive(b []byte, from netip.AddrPort, now int64)
}

// maxPacket is the largest datagram we read; longer ones are cut and then malformed or harmless.
const maxPacket = 2048

// loopSet spreads streams over the loops.
type loopSet struct {
	loops []packetLoop
	next  atomic.Uint32
}

func (l *loopSet) pick() packetLoop {
	return l.loops[int(l.next.Add(1))%len(l.loops)]
}

func (l *loopSet) close() {
	for _, p := range l.loops {
		p.close()
	}
}
