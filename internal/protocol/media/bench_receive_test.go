package media

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"soniq/internal/protocol/media/codec"
)

// BenchmarkReceive measures one packet from the loop to the socket of the other leg, without the system calls.
func BenchmarkReceive(b *testing.B) {
	from := netip.MustParseAddrPort("127.0.0.1:9")
	for name, pt := range map[string]uint8{"relay": 0, "transcode": 8, "event": 101} {
		b.Run(name, func(b *testing.B) {
			e := testEngine(b, Config{}, newLoop)
			x, y := openStream(b, e), openStream(b, e)
			x.SetRemote(Remote{Addr: from, Formats: g711Formats(codec.PCMU, 101)})
			y.SetRemote(Remote{Addr: from, Formats: g711Formats(codec.PCMU, 101)})
			if pt == 8 {
				x.SetRemote(Remote{Addr: from, Formats: g711Formats(codec.PCMA, 101)})
			}
			Bridge(x, y)
			real := y.rtp
			y.out.mu.Lock()
			y.rtp = &discardSocket{}
			y.out.mu.Unlock()
			defer func() { y.rtp = real }()
			payload := make([]byte, 160)
			if pt == 101 {
				payload = []byte{5, 10, 0, 160}
			}
			packet := rtpPacket(0, 0, 7, pt, payload)
			buf := make([]byte, len(packet))
			now, n := e.clock(), uint32(0)
			b.ReportAllocs()
			for b.Loop() {
				copy(buf, packet)
				binary.BigEndian.PutUint16(buf[2:], uint16(n))
				binary.BigEndian.PutUint32(buf[4:], n*160)
				x.receive(buf, from, now)
				n++
				now += int64(20 * time.Millisecond)
			}
		})
	}
}
