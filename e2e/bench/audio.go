package main

import (
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// orchestra sends and receives audio: G.711, 20 ms, 172 bytes a packet. Several calls share a socket, which saves
// this process most of the cost of many sockets. A relay has a port of its own for each call anyway.
type orchestra struct {
	sockets []*net.UDPConn
	next    atomic.Int64
	readers sync.WaitGroup

	mu     sync.Mutex // guards delays
	delays []uint32   // µs
}

const socketsPerSide = 8

func newOrchestra(ip string) (*orchestra, error) {
	o := &orchestra{}
	for range socketsPerSide {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(ip)})
		if err != nil {
			return nil, err
		}
		_ = c.SetReadBuffer(4 << 20)
		o.sockets = append(o.sockets, c)
		o.readers.Go(func() { o.read(c) })
	}
	return o, nil
}

// seat returns the socket for the audio of the next call.
func (o *orchestra) seat() (int, netip.AddrPort) {
	i := int(o.next.Add(1)) % len(o.sockets)
	return i, o.sockets[i].LocalAddr().(*net.UDPAddr).AddrPort()
}

func (o *orchestra) read(c *net.UDPConn) {
	b := make([]byte, 2048)
	var mine []uint32
	for {
		n, _, err := c.ReadFromUDPAddrPort(b)
		if err != nil {
			break
		}
		if n == 172 {
			mine = append(mine, uint32((time.Now().UnixNano()-int64(binary.LittleEndian.Uint64(b[12:])))/1000))
		}
	}
	o.mu.Lock()
	o.delays = append(o.delays, mine...)
	o.mu.Unlock()
}

// close ends listening and returns the delays of everything that came, in µs.
func (o *orchestra) close() []uint32 {
	for _, c := range o.sockets {
		_ = c.Close()
	}
	o.readers.Wait()
	return o.delays
}

// stream is one direction of a call.
type stream struct {
	from *net.UDPConn
	to   netip.AddrPort
}

// play sends 50 packets a second for each stream, evenly, and returns how many it sent.
func play(all []stream, d time.Duration) int {
	b := make([]byte, 172)
	sent, began := 0, time.Now()
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	for time.Since(began) < d {
		due := int(time.Since(began).Seconds() * 50 * float64(len(all)))
		for ; sent < due; sent++ {
			i, n := sent%len(all), sent/len(all)
			b[0], b[1] = 0x80, 0
			binary.BigEndian.PutUint16(b[2:], uint16(n))
			binary.BigEndian.PutUint32(b[4:], uint32(160*n))
			binary.BigEndian.PutUint32(b[8:], uint32(i+1))
			binary.LittleEndian.PutUint64(b[12:], uint64(time.Now().UnixNano()))
			_, _ = all[i].from.WriteToUDPAddrPort(b, all[i].to)
		}
		<-tick.C
	}
	return sent
}
