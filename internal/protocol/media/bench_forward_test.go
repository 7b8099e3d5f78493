//go:build linux && (amd64 || arm64)

package media

import (
	"net/netip"
	"testing"
	"time"
)

// forwarder forwards each packet to the next socket: the minimum of a relay.
type forwarder struct {
	next packetSocket
	to   netip.AddrPort
	n    int
}

func (p *forwarder) receive(b []byte, _ netip.AddrPort, _ int64) {
	p.n++
	p.next.send(b, p.to)
}

// BenchmarkBareForward measures the kernel's share of a relayed packet at this moment: one thread, recvfrom and
// sendto on warm sockets. Compare the figures of BenchmarkRelay with it.
func BenchmarkBareForward(b *testing.B) {
	l := &epollLoop{epfd: -1}
	ring := make([]*forwarder, 64)
	socks := make([]*epollSocket, len(ring))
	addrs := make([]netip.AddrPort, len(ring))
	ports, _ := newPortSet(0, 0)
	for i := range ring {
		ring[i] = &forwarder{}
		port, err := ports.bind(func(port uint16) error {
			fd, err := bindUDP(netip.AddrPortFrom(loopback, port))
			socks[i] = &epollSocket{loop: l, fd: fd, to: ring[i]}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		addrs[i] = netip.AddrPortFrom(loopback, port)
		defer socks[i].close()
	}
	for i := range ring {
		ring[i].next, ring[i].to = socks[(i+1)%len(ring)], addrs[(i+1)%len(ring)]
	}
	socks[0].send(make([]byte, 172), addrs[1])
	cpu, n := cpuTime(b), 0
	for b.Loop() {
		socks[(n+1)%len(ring)].read(l, 0)
		n++
	}
	if ring[1].n == 0 {
		b.Fatal("the packet got lost")
	}
	b.ReportMetric(float64((cpuTime(b)-cpu)/time.Nanosecond)/float64(n), "cpu-ns/packet")
}
