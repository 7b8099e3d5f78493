package media

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// udpLoop is the portable packetLoop: one goroutine per socket on the runtime's poller.
type udpLoop struct {
	clock func() int64
	wg    sync.WaitGroup
}

func newUDPLoop(clock func() int64) (packetLoop, error) { return &udpLoop{clock: clock}, nil }

func (l *udpLoop) listen(at netip.AddrPort, r receiver) (packetSocket, error) {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, fmt.Errorf("listen for RTP at %v: %w", at, err)
	}
	_ = c.SetReadBuffer(receiveBuffer)
	s := &udpSocket{conn: c, done: make(chan struct{})}
	l.wg.Add(1)
	go func() {
		defer l.wg.Done()
		s.read(r, l.clock)
	}()
	return s, nil
}

func (l *udpLoop) close() { l.wg.Wait() }

type udpSocket struct {
	conn *net.UDPConn
	done chan struct{}
}

func (s *udpSocket) read(r receiver, clock func() int64) {
	defer close(s.done)
	b := make([]byte, maxPacket)
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(b)
		if err != nil {
			return // closed: reads of an open unconnected socket do not fail
		}
		r.receive(b[:n], netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), clock())
	}
}

func (s *udpSocket) send(b []byte, to netip.AddrPort) bool {
	_, err := s.conn.WriteToUDPAddrPort(b, to)
	return err == nil
}

func (s *udpSocket) close() {
	_ = s.conn.Close()
	<-s.done
}
