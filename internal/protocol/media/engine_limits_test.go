package media

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/record"
	"soniq/internal/protocol/media/rtp"
)

// discardSocket is a socket that drops the packets sent.
type discardSocket struct{ sent int }

func (n *discardSocket) send([]byte, netip.AddrPort) bool { n.sent++; return true }
func (n *discardSocket) close()                           {}

func TestRelay_DoesNotAllocate(t *testing.T) {
	e := testEngine(t, Config{}, newLoop) // not parallel: AllocsPerRun counts for the whole process
	a, b := openStream(t, e), openStream(t, e)
	from := netip.MustParseAddrPort("127.0.0.1:9")
	a.SetRemote(Remote{Addr: from, Formats: g711Formats(codec.PCMU, 101)})
	b.SetRemote(Remote{Addr: from, Formats: g711Formats(codec.PCMA, 96)})
	Bridge(a, b)
	ring := rtp.NewRing(16 << 10) // of a recorder whose disk is blocked
	a.FeedRecording(ring, false)
	real := b.rtp
	sink := &discardSocket{}
	b.out.mu.Lock()
	b.rtp = sink
	b.out.mu.Unlock()
	defer func() { b.rtp = real }()
	audio, event := rtpPacket(0, 0, 7, 0, make([]byte, 160)), rtpPacket(0, 0, 7, 101, []byte{5, 10, 0, 160})
	now, n := e.clock(), uint32(0)
	buf := make([]byte, 200)
	one := func(p []byte) {
		copy(buf, p)
		binary.BigEndian.PutUint16(buf[2:], uint16(n))
		binary.BigEndian.PutUint32(buf[4:], n*160)
		a.receive(buf[:len(p)], from, now)
		n++
		now += int64(20 * time.Millisecond)
	}
	if got := testing.AllocsPerRun(2000, func() { one(audio); one(event) }); got != 0 {
		t.Errorf("%v allocations per packet pair", got)
	}
	if sink.sent < 4000 || ring.Dropped.Load() == 0 || a.Stats().DTMF < 2000 {
		t.Errorf("the path was not walked: %d sent, %d events", sink.sent, a.Stats().DTMF)
	}
}

func TestPacketLoop_DoesNotAllocate(t *testing.T) {
	e := testEngine(t, Config{Loops: 1}, newLoop)
	a, b := openStream(t, e), openStream(t, e)
	phone, sink := rawSocket(t, "127.0.0.1"), rawSocket(t, "127.0.0.1")
	a.SetRemote(Remote{Addr: phone.LocalAddr().(*net.UDPAddr).AddrPort()})
	b.SetRemote(Remote{Addr: sink.LocalAddr().(*net.UDPAddr).AddrPort()})
	Bridge(a, b)
	p, to := rtpPacket(0, 0, 7, 0, make([]byte, 160)), a.Local()
	buf := make([]byte, 200)
	n := uint16(0)
	got := testing.AllocsPerRun(2000, func() {
		n++
		binary.BigEndian.PutUint16(p[2:], n)
		_ = sink.SetReadDeadline(time.Now().Add(patience))
		if _, err := phone.WriteToUDPAddrPort(p, to); err != nil {
			t.Fatal(err)
		}
		if _, _, err := sink.ReadFromUDPAddrPort(buf); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("%v allocations per relayed packet, sender and receiver included", got)
	}
}

func TestPorts_ExhaustedThenReused(t *testing.T) {
	t.Parallel()
	e, err := New(Config{Bind: loopback, PortMin: 21000, PortMax: 21019})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var open []*Stream
	seen := map[uint16]bool{}
	for {
		s, err := e.Open()
		if err != nil {
			if !errors.Is(err, ErrNoPorts) {
				t.Fatal(err)
			}
			break
		}
		p := s.Local().Port()
		if p%2 != 0 || p < 21000 || p > 21018 || seen[p] {
			t.Errorf("port %d", p)
		}
		seen[p] = true
		open = append(open, s)
	}
	if len(open) != 10 || e.Stats().NoPorts != 1 {
		t.Errorf("%d pairs of 10; %+v", len(open), e.Stats())
	}
	open[3].Close()
	open[3].Close()
	if s, err := e.Open(); err != nil || s.Local().Port() != open[3].Local().Port() {
		t.Errorf("a freed pair is not used again: %v", err)
	}
}

func TestPorts_TakenPortSkipped(t *testing.T) {
	t.Parallel()
	squatter, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 21101}) // an RTCP port
	if err != nil {
		t.Skip(err)
	}
	defer squatter.Close()
	e, err := New(Config{Bind: loopback, PortMin: 21100, PortMax: 21103})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if s, err := e.Open(); err != nil || s.Local().Port() != 21102 {
		t.Errorf("%v", err)
	}
	if _, err := e.Open(); !errors.Is(err, ErrNoPorts) {
		t.Errorf("got %v", err)
	}
}

func TestPorts_InvalidRangesRefused(t *testing.T) {
	t.Parallel()
	for _, r := range [][2]int{{20001, 20001}, {20000, 20000}, {-5, 10}, {65000, 70000}, {30000, 20000}, {20001, 20002}} {
		if _, err := New(Config{PortMin: r[0], PortMax: r[1]}); err == nil {
			t.Errorf("%v was accepted", r)
		}
	}
}

func openDescriptors(t *testing.T) int {
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(d)
}

func TestEngine_NoLeakedGoroutinesOrDescriptors(t *testing.T) {
	goroutines, fds := runtime.NumGoroutine(), openDescriptors(t) // not parallel: counts for the whole process
	for _, loop := range []func(func() int64) (packetLoop, error){newLoop, newUDPLoop} {
		e, err := newEngine(Config{Bind: loopback}, loop)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			a, b := openStream(t, e), openStream(t, e)
			connect(a, b, g711Formats(codec.PCMU, 101))
			heard := newEarpiece(b)
			a.SetComfort(true)
			heard.wait(t, func() bool { return len(heard.pcm) > 0 })
			r, err := e.Record(record.Config{Path: filepath.Join(t.TempDir(), "a.wav"), Left: a, Right: b, Tap: func(record.Chunk) {}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			a.Close()
			b.Close()
		}
		if n := e.Stats().Streams; n != 0 {
			t.Errorf("%d streams left", n)
		}
		e.Close()
		e.Close()
	}
	waitFor(t, "goroutines and descriptors gone", func() bool {
		return runtime.NumGoroutine() <= goroutines && openDescriptors(t) <= fds
	})
}

func TestEngine_IdleUsesNoCPU(t *testing.T) {
	e := testEngine(t, Config{}, newLoop) // not parallel: counts for the whole process
	for range 50 {
		connect(openStream(t, e), openStream(t, e), g711Formats(codec.PCMU, 101))
	}
	runtime.GC()
	before := cpuTime(t)
	<-time.After(500 * time.Millisecond) // the test measures time in which nothing happens
	if used := cpuTime(t) - before; used > 10*time.Millisecond {
		t.Errorf("%v of CPU in half an idle second", used)
	}
}

// Random packets on both ports cause no panic and do not disturb the leg.
func TestReceive_GarbageCounted(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{}, newLoop)
	a := openStream(t, e)
	peer := rawSocket(t, "127.0.0.1")
	a.SetRemote(Remote{Addr: peer.LocalAddr().(*net.UDPAddr).AddrPort(), Formats: g711Formats(codec.PCMU, 101)})
	rng := rand.New(rand.NewPCG(3, 4))
	rtcp := netip.AddrPortFrom(a.Local().Addr(), a.Local().Port()+1)
	for range 500 {
		b := make([]byte, rng.IntN(100))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		_, _ = peer.WriteToUDPAddrPort(b, a.Local())
		_, _ = peer.WriteToUDPAddrPort(b, rtcp)
	}
	_, _ = peer.WriteToUDPAddrPort(rtpPacket(1, 1, 1, 0, make([]byte, 160)), a.Local())
	waitFor(t, "the good packet after the bad", func() bool { return a.Stats().ReceivedBytes >= 160 && a.Stats().Malformed > 0 })
}

func FuzzPackets(f *testing.F) {
	f.Add(rtpPacket(1, 1, 1, 0, make([]byte, 160)), true)
	f.Add(rtpPacket(1, 1, 1, 101, []byte{1, 0x8A, 3, 32}), true)
	f.Add([]byte{0x80, 200, 0, 6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, false)
	e, err := New(Config{Bind: loopback, Loops: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(e.Close)
	a, b := openStream(f, e), openStream(f, e)
	from := netip.MustParseAddrPort("127.0.0.1:9")
	connectTo := Remote{Addr: from, Formats: g711Formats(codec.PCMU, 101)}
	a.SetRemote(connectTo)
	connectTo.Formats = g711Formats(codec.PCMA, 96)
	b.SetRemote(connectTo)
	Bridge(a, b)
	b.rtp, b.rtcp, a.rtcp = &discardSocket{}, &discardSocket{}, &discardSocket{}
	r, err := e.Record(record.Config{Path: filepath.Join(f.TempDir(), "a.wav"), Left: a, Right: b})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _, _ = r.Close(f.Context()) })
	f.Fuzz(func(t *testing.T, packet []byte, isRTP bool) {
		if len(packet) > maxPacket {
			return
		}
		if isRTP {
			a.receive(packet, from, e.clock())
		} else {
			(*rtcpReceiver)(a).receive(packet, from, e.clock())
		}
	})
}

func TestLoopSet_FillsInOrder(t *testing.T) {
	t.Parallel()
	l := loopSet{loops: []*loopSlot{{}, {}}}
	for range 3 * loopFill {
		l.pick().streams.Add(1)
	}
	if a, b := l.loops[0].streams.Load(), l.loops[1].streams.Load(); a != 3*loopFill/2 || b != a {
		t.Errorf("%d and %d", a, b)
	}
	l = loopSet{loops: []*loopSlot{{}, {}}}
	for range loopFill / 2 {
		l.pick().streams.Add(1)
	}
	if n := l.loops[1].streams.Load(); n != 0 {
		t.Errorf("%d streams on the second loop while the first has room", n)
	}
}
