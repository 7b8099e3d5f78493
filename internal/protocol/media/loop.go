package media

import (
	"net/netip"
	"sync/atomic"
)

// A packetLoop reads many sockets and passes each packet to the socket's receiver. There are two implementations: raw
// epoll with one thread per loop (loop_epoll.go), and one goroutine per socket for other systems (loop_udp.go).
type packetLoop interface {
	// listen binds a UDP socket and starts to read it.
	listen(at netip.AddrPort, r receiver) (packetSocket, error)
	// close ends the loop and waits for it. Its sockets must be closed before.
	close()
}

// A packetSocket is one bound UDP socket.
type packetSocket interface {
	// send sends one datagram and never blocks. If the kernel cannot take the packet, it is dropped, as in the
	// network. Calls must not overlap.
	send(b []byte, to netip.AddrPort) bool
	// close frees the port. When it returns, no receive call is running; it must therefore not be called from one.
	close()
}

// A receiver handles the packets of one socket. Calls for one socket do not overlap.
type receiver interface {
	// receive may change b and must not keep it. now is the engine's clock in ns.
	receive(b []byte, from netip.AddrPort, now int64)
}

// maxPacket is the largest datagram that is read whole. Longer ones are truncated and then malformed or harmless.
const maxPacket = 2048

// loopFill is the number of streams on a loop before the next loop is used. A busy loop finds several packets per
// wake-up; two half-busy loops wake up twice. With this number a loop uses about a fifth of a core.
const loopFill = 1200

// loopSet distributes streams over the packet loops.
type loopSet struct {
	loops []*loopSlot
}

// loopSlot is a loop with the number of its streams.
type loopSlot struct {
	packetLoop
	streams atomic.Int32
}

// pick returns the first loop that is not full, or the least loaded one.
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
