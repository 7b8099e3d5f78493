package media

import (
	"encoding/binary"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/rtp"
)

// A phone that sends gets receiver reports, and a BYE at the end. The fields of our reports are checked.
func TestRTCP_ReportsAndBye(t *testing.T) {
	t.Parallel()
	var skip atomic.Int64
	began := time.Now()
	e := testEngine(t, Config{Now: func() time.Time { return began.Add(time.Duration(skip.Load())) }, Latch: time.Hour}, newLoop)
	phone, rtcp := rawSocket(t, "127.0.0.1"), rawSocket(t, "127.0.0.1")
	a := openStream(t, e)
	addr := phone.LocalAddr().(*net.UDPAddr).AddrPort()
	a.SetRemote(Remote{Addr: addr, RTCP: rtcp.LocalAddr().(*net.UDPAddr).AddrPort(), Formats: g711Formats(codec.PCMU, 101)})
	for i := range 20 { // passed directly, so that the clock can be advanced between packets
		skip.Add(int64(300 * time.Millisecond))
		if i == 7 || i == 8 {
			continue // lost
		}
		a.receive(rtpPacket(uint16(65530+i), uint32(2400*i), 0xABCD, 0, make([]byte, 160)), addr, e.clock())
	}
	b := readRTCP(t, rtcp)
	if b[1] != rtcpRR || binary.BigEndian.Uint32(b[8:]) != 0xABCD {
		t.Fatalf("want a receiver report about 0xABCD: %x", b)
	}
	if lost := binary.BigEndian.Uint32(b[12:]) & 0xFFFFFF; lost != 2 {
		t.Errorf("reports %d lost, want 2", lost)
	}
	if seq := binary.BigEndian.Uint32(b[16:]); seq>>16 != 1 {
		t.Errorf("extended number %#x has no wrap", seq)
	}
	if n := 4 * (int(binary.BigEndian.Uint16(b[2:])) + 1); b[n+1] != rtcpSDES || b[n+8] != 1 {
		t.Errorf("no CNAME: %x", b[n:])
	}
	if st := a.Stats(); st.Lost != 2 || st.Jitter > time.Millisecond {
		t.Errorf("%+v", st)
	}
	if err := a.Send(t.Context(), make([]int16, 160)); err != nil {
		t.Fatal(err)
	}
	a.Close()
	b = readRTCP(t, rtcp)
	if b[1] != rtcpSR || b[len(b)-7] != rtcpBYE || binary.BigEndian.Uint32(b[20:]) != 1 {
		t.Errorf("want a sender report of one packet that ends in BYE: %x", b)
	}
}

func readRTCP(t *testing.T, c *net.UDPConn) []byte {
	t.Helper()
	b := make([]byte, 1500)
	_ = c.SetReadDeadline(time.Now().Add(patience))
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

func TestRTCP_ForeignSourceIgnored(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{}, newLoop)
	a := openStream(t, e)
	a.SetRemote(Remote{Addr: netip.MustParseAddrPort("127.0.0.1:9"), Formats: g711Formats(codec.PCMU, 101)})
	stranger := rawSocket(t, "127.0.0.66")
	_, _ = stranger.WriteToUDPAddrPort([]byte{0x80, rtcpRR, 0, 1, 0, 0, 0, 1}, netip.AddrPortFrom(a.Local().Addr(), a.Local().Port()+1))
	waitFor(t, "the stranger counted", func() bool { return a.Stats().Ignored == 1 })
}

func TestReception_JitterOfRFC3550(t *testing.T) {
	t.Parallel()
	var r reception
	for i := range 2000 { // every second packet 10 ms late: |D| is always 80 samples
		r.addPacket(rtp.Header{Seq: uint16(i), TS: uint32(160 * i), SSRC: 1}, rtp.KindPCMU, 160, int64(i)*20e6+int64(i%2)*10e6)
	}
	if got := float64(r.jitter) / 16; got < 75 || got > 81 {
		t.Errorf("jitter %.1f samples, want 80", got)
	}
	if r.lost() != 0 || r.outOfOrder != 0 {
		t.Errorf("lost %d, out of order %d", r.lost(), r.outOfOrder)
	}
}
