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

// loopFill is how many streams a loop gets before the next one is used. A busy
// loop finds several packets each time it wakes; two half-busy ones wake twice.
// At this number a loop uses about a fifth of a core.
const loopFill = 1200

// loopSet spreads streams over the loops.
type loopSet struct {
	loops []*loopSlot
}

// loopSlot is a loop and the number of streams on it.
type loopSlot struct {
	packetLoop
	streams atomic.Int32
}

// pick returns the first loop that is not filled, or the least loaded.
func (l *loopSet) pick() *loopSlot {
	least := l.loops[0]
	for _, p := range l.loops {
		n := p.streams.Load()
		if n < loopFill {
			return p
		}
		if n < least.streams.Load() {
			least = p
		}
	}
	return least
}

func (l *loopSet) close() {
	for _, p := range l.loops {
		p.close()
	}
}
