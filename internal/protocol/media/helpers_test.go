package media

import (
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/mediatest"
	"soniq/internal/protocol/media/rtp"
	"soniq/internal/protocol/media/sdp"
)

var loopback = netip.MustParseAddr("127.0.0.1")

// eachLoop runs a test on both packet loops.
func eachLoop(t *testing.T, f func(t *testing.T, e *Engine)) {
	for name, loop := range map[string]func(func() int64) (packetLoop, error){"native": newLoop, "portable": newUDPLoop} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, testEngine(t, Config{}, loop))
		})
	}
}

func testEngine(t testing.TB, cfg Config, loop func(func() int64) (packetLoop, error)) *Engine {
	t.Helper()
	if !cfg.Bind.IsValid() {
		cfg.Bind = loopback
	}
	e, err := newEngine(cfg, loop)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// testCall holds two phones and the two legs that serve them.
type testCall struct{ caller, callee, a, b *Stream }

func openStream(t testing.TB, e *Engine) *Stream {
	t.Helper()
	s, err := e.Open()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// g711Formats returns the formats of a test phone: one law and events.
func g711Formats(c codec.Codec, event uint8) []sdp.Format {
	return []sdp.Format{{PT: uint8(8 * c), Name: c.String(), Rate: 8000}, {PT: event, Name: sdp.TelephoneEvent, Rate: 8000}}
}

func newTestCall(t testing.TB, e *Engine) testCall {
	t.Helper()
	phones := testEngine(t, Config{}, newLoop)
	c := testCall{openStream(t, phones), openStream(t, phones), openStream(t, e), nil}
	var err error
	if c.b, err = e.OpenPeer(c.a); err != nil {
		t.Fatal(err)
	}
	connect(c.caller, c.a, g711Formats(codec.PCMU, 101))
	connect(c.callee, c.b, g711Formats(codec.PCMU, 101))
	Bridge(c.a, c.b)
	return c
}

// connect sets a phone and a leg as each other's remote address.
func connect(phone, leg *Stream, f []sdp.Format) {
	phone.SetRemote(Remote{Addr: leg.Local(), Formats: f})
	leg.SetRemote(Remote{Addr: phone.Local(), Formats: f})
}

// earpiece collects the audio and the digits that a phone receives.
type earpiece struct {
	mu     sync.Mutex
	pcm    []int16
	digits string
	more   chan struct{}
}

func newEarpiece(s *Stream) *earpiece {
	e := &earpiece{more: make(chan struct{}, 1)}
	s.OnAudio(func(pcm []int16) {
		e.mu.Lock()
		e.pcm = append(e.pcm, pcm...)
		e.mu.Unlock()
		wakeUp(e.more)
	})
	s.OnDTMF(func(d rune) {
		e.mu.Lock()
		e.digits += string(d)
		e.mu.Unlock()
		wakeUp(e.more)
	})
	return e
}

// wait waits until heard returns true, and returns the audio so far. heard is called under the lock.
func (e *earpiece) wait(t testing.TB, heard func() bool) []int16 {
	t.Helper()
	deadline := time.After(patience)
	for {
		e.mu.Lock()
		ok, pcm := heard(), append([]int16(nil), e.pcm...)
		e.mu.Unlock()
		if ok {
			return pcm
		}
		select {
		case <-e.more:
		case <-deadline:
			t.Fatalf("waited %v; heard %d samples, digits %q", patience, len(pcm), e.digits)
		}
	}
}

func (e *earpiece) tone(t testing.TB) float64 {
	t.Helper()
	e.mu.Lock()
	e.pcm = nil
	e.mu.Unlock()
	hz, _ := dsp.DominantFrequency(e.wait(t, func() bool { return len(e.pcm) >= 1600 }), 8000)
	return hz
}

// wantTone fails if none of a few consecutive pieces of audio has the tone. The machine may disturb single pieces and
// leave some silent.
func (e *earpiece) wantTone(t testing.TB, who string, hz float64) {
	t.Helper()
	var got []float64
	for late := time.Now().Add(patience); len(got) < trials && time.Now().Before(late); {
		now := e.tone(t)
		if mediatest.NearHz(now, hz) {
			return
		}
		if now > 0 {
			got = append(got, now)
		}
	}
	t.Errorf("%s hears %.0f Hz, want %.0f", who, got, hz)
}

func (e *earpiece) reset() {
	e.mu.Lock()
	e.pcm = nil
	e.mu.Unlock()
}

// playTone plays a tone until the test ends or stop is called.
func playTone(t testing.TB, s *Stream, hz float64) (stop func()) {
	done, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		for {
			select {
			case <-done:
				return
			default:
				if s.Send(t.Context(), dsp.Tone(hz, -10, 100*time.Millisecond, 8000)) != nil {
					return
				}
			}
		}
	}()
	var once sync.Once
	stop = func() { once.Do(func() { close(done); <-finished }) }
	t.Cleanup(stop)
	return stop
}

// waitFor waits for a condition that has no event of its own.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v: %s", patience, what)
		}
		<-tick.C
	}
}

// rawSocket opens a UDP socket on another loopback address.
func rawSocket(t testing.TB, host string) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(host)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func addrOf(c *net.UDPConn) netip.AddrPort { return c.LocalAddr().(*net.UDPAddr).AddrPort() }

func rtpPacket(seq uint16, ts, ssrc uint32, pt uint8, payload []byte) []byte {
	b := make([]byte, rtp.HeaderLen+len(payload))
	rtp.Header{PT: pt, Seq: seq, TS: ts, SSRC: ssrc}.Put(b)
	copy(b[rtp.HeaderLen:], payload)
	return b
}
