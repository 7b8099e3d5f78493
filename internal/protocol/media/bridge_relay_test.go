package media

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/mediatest"
	"soniq/internal/protocol/media/rtp"
)

func TestBridge_BothDirections(t *testing.T) {
	t.Parallel()
	eachLoop(t, func(t *testing.T, e *Engine) {
		c := newTestCall(t, e)
		callerHears, calleeHears := newEarpiece(c.caller), newEarpiece(c.callee)
		playTone(t, c.caller, 440)
		playTone(t, c.callee, 1000)
		callerHears.wantTone(t, "caller", 1000)
		calleeHears.wantTone(t, "callee", 440)
		st := c.a.Stats()
		if st.Lost != 0 || st.OutOfOrder != 0 || st.First.IsZero() || st.Received < 10 || st.ReceivedBytes != 160*st.Received {
			t.Errorf("stats %+v", st)
		}
	})
}

func TestBridge_IPv6(t *testing.T) {
	t.Parallel()
	eachLoop(t, func(t *testing.T, e *Engine) {
		v6 := netip.IPv6Loopback()
		a, err := e.OpenOn(v6, v6)
		if err != nil {
			t.Skip("no IPv6 here:", err)
		}
		phone, _ := e.OpenOn(v6, v6)
		b, other := openStream(t, e), openStream(t, e)
		connect(phone, a, g711Formats(codec.PCMU, 101))
		connect(other, b, g711Formats(codec.PCMU, 101))
		Bridge(a, b)
		ear := newEarpiece(phone)
		playTone(t, other, 700)
		ear.wantTone(t, "IPv6 phone", 700)
	})
}

// A wildcard IPv6 socket serves IPv4 phones too.
func TestOpenOn_DualStack(t *testing.T) {
	t.Parallel()
	eachLoop(t, func(t *testing.T, e *Engine) {
		a, err := e.OpenOn(netip.IPv6Unspecified(), loopback)
		if err != nil {
			t.Skip("no IPv6 here:", err)
		}
		phone := openStream(t, e)
		connect(phone, a, g711Formats(codec.PCMU, 101))
		heard := newEarpiece(a)
		stop := playTone(t, phone, 600)
		heard.wantTone(t, "leg", 600)
		stop()
		back := newEarpiece(phone)
		playTone(t, a, 900)
		back.wantTone(t, "phone", 900)
	})
}

func TestSetDirection_HoldAndResume(t *testing.T) {
	t.Parallel()
	eachLoop(t, func(t *testing.T, e *Engine) {
		c := newTestCall(t, e)
		ear := newEarpiece(c.callee)
		playTone(t, c.caller, 440)
		playTone(t, c.callee, 1000)
		ear.tone(t)
		c.b.SetDirection(false, true) // the callee is held
		sent := c.b.Stats().Sent
		before := c.a.Stats().Received
		waitFor(t, "more packets from the caller", func() bool { return c.a.Stats().Received > before+10 })
		if got := c.b.Stats().Sent; got != sent {
			t.Errorf("%d packets reached the held side", got-sent)
		}
		c.b.SetDirection(true, true)
		ear.wantTone(t, "after resume the callee", 440)
		c.a.SetDirection(true, false) // audio from the caller is not accepted
		sent, before = c.b.Stats().Sent, c.a.Stats().Received
		waitFor(t, "more packets from the caller", func() bool { return c.a.Stats().Received > before+10 })
		if got := c.b.Stats().Sent; got > sent+1 { // one may have been in transit
			t.Errorf("%d packets of a leg that may not send were relayed", got-sent)
		}
	})
}

func TestRelayEvent_PayloadTypeMapped(t *testing.T) {
	t.Parallel()
	eachLoop(t, func(t *testing.T, e *Engine) {
		c := newTestCall(t, e)
		connect(c.callee, c.b, g711Formats(codec.PCMU, 96)) // the callee uses payload type 96 for events, the caller 101
		ear := newEarpiece(c.callee)
		if err := c.caller.SendDTMF(t.Context(), "15#D", DTMFOptions{}); err != nil {
			t.Fatal(err)
		}
		ear.wait(t, func() bool { return ear.digits == "15#D" })
		waitFor(t, "events counted", func() bool { return c.a.Stats().DTMF == 4 && c.callee.Stats().DTMF == 4 })
	})
}

func TestBridge_G711LawConverted(t *testing.T) {
	t.Parallel()
	eachLoop(t, func(t *testing.T, e *Engine) {
		c := newTestCall(t, e)
		connect(c.callee, c.b, g711Formats(codec.PCMA, 101))
		ear, back := newEarpiece(c.callee), newEarpiece(c.caller)
		playTone(t, c.caller, 440)
		playTone(t, c.callee, 1000)
		ear.wantTone(t, "A-law phone", 440)
		back.wantTone(t, "µ-law phone", 1000)
	})
}

func TestSendDTMF_WithoutEventsRefused(t *testing.T) {
	t.Parallel()
	s := openStream(t, testEngine(t, Config{}, newLoop))
	s.SetRemote(Remote{Addr: s.Local(), Formats: g711Formats(codec.PCMU, 101)[:1]})
	if err := s.SendDTMF(t.Context(), "1", DTMFOptions{}); !errors.Is(err, ErrNoEvents) {
		t.Errorf("got %v", err)
	}
	if err := s.SendDTMF(t.Context(), "x", DTMFOptions{}); err == nil || !strings.Contains(err.Error(), "'x'") {
		t.Errorf("got %v", err)
	}
}

// Whatever sources the packets come from, the phone sees one source with consecutive sequence numbers and a
// continuous timeline.
func TestRelay_ContinuousOverTransfer(t *testing.T) {
	t.Parallel()
	eachLoop(t, func(t *testing.T, e *Engine) {
		sink := rawSocket(t, "127.0.0.1")
		b := openStream(t, e)
		b.SetRemote(Remote{Addr: sink.LocalAddr().(interface{ AddrPort() netip.AddrPort }).AddrPort(),
			Formats: g711Formats(codec.PCMU, 101)})
		var last rtp.Header
		for n := range 3 {
			a, phone := openStream(t, e), rawSocket(t, "127.0.0.1")
			a.SetRemote(Remote{Addr: phone.LocalAddr().(interface{ AddrPort() netip.AddrPort }).AddrPort(),
				Formats: g711Formats(codec.PCMU, 101)})
			Bridge(a, b)
			for i := range 5 {
				seq, ts := uint16(65533+i), uint32(0xFFFFFF00+160*i)
				if _, err := phone.WriteToUDPAddrPort(rtpPacket(seq, ts, uint32(7+n), 0, make([]byte, 160)), a.Local()); err != nil {
					t.Fatal(err)
				}
				h := readRTP(t, sink)
				first := n == 0 && i == 0
				if !first && (h.SSRC != last.SSRC || h.Seq != last.Seq+1 || int32(h.TS-last.TS) < 160 || h.TS-last.TS > 8000) {
					t.Fatalf("source %d packet %d: %+v after %+v", n, i, h, last)
				}
				if h.Marker != (i == 0) {
					t.Errorf("source %d packet %d: marker %v", n, i, h.Marker)
				}
				last = h
			}
		}
	})
}

func readRTP(t testing.TB, c interface {
	SetReadDeadline(time.Time) error
	Read([]byte) (int, error)
}) rtp.Header {
	t.Helper()
	var b [maxPacket]byte
	_ = c.SetReadDeadline(time.Now().Add(patience))
	n, err := c.Read(b[:])
	if err != nil {
		t.Fatal(err)
	}
	h, _, _, ok := rtp.Parse(b[:n])
	if !ok {
		t.Fatalf("not RTP: %x", b[:n])
	}
	return h
}

func TestSend_SuppressesRelay(t *testing.T) {
	t.Parallel()
	undisturbed(t, func(t testing.TB) {
		e := testEngine(t, Config{}, newLoop)
		c := newTestCall(t, e)
		ear := newEarpiece(c.callee)
		playTone(t, c.caller, 440)
		ear.tone(t)
		ctx, stop := context.WithCancel(t.Context())
		said := make(chan error, 1)
		// one announcement to the callee: between two announcements the caller is heard
		go func() { said <- c.b.Send(ctx, dsp.Tone(1500, -10, time.Minute, 8000)) }()
		defer func() { stop(); <-said }()
		waitFor(t, "the announcement", func() bool { return mediatest.NearHz(ear.tone(t), 1500) })
		ear.reset()
		heard := ear.wait(t, func() bool { return len(ear.pcm) >= 20*160 })
		for i := 0; i+160 <= len(heard); i += 160 {
			if hz, _ := dsp.DominantFrequency(heard[i:i+160], 8000); hz > 300 && hz < 600 {
				t.Fatalf("the caller's %.0f Hz came between", hz)
			}
		}
	})
}

func TestParseRTP_ExtensionsAndPadding(t *testing.T) {
	t.Parallel()
	payload := strings.Repeat("x", 160)
	b := append(rtpPacket(9, 9, 9, 0, nil), "csrc"...)
	b = append(b, 0xBE, 0xDE, 0, 1, 1, 2, 3, 4)
	b = append(b, payload...)
	b = append(b, 0, 0, 3)
	b[0] |= 0x20 | 0x10 | 1
	h, from, to, ok := rtp.Parse(b)
	if !ok || string(b[from:to]) != payload || h.Seq != 9 {
		t.Errorf("%v [%d:%d] %v", h, from, to, ok)
	}
	for n := range len(b) {
		if _, from, to, ok := rtp.Parse(b[:n]); ok && (from < rtp.HeaderLen || to > n || from > to) {
			t.Errorf("cut to %d: [%d:%d]", n, from, to)
		}
	}
}
