package media

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/dsp"
)

// The rules as a table: which packets a latch accepts, before and after its window.
func TestLatch_Rules(t *testing.T) {
	t.Parallel()
	exactly := netip.MustParseAddrPort("192.0.2.1:4000")
	otherPort := netip.MustParseAddrPort("192.0.2.1:5000")
	viaNAT := netip.MustParseAddrPort("203.0.113.9:6000")
	foreign := netip.MustParseAddrPort("198.51.100.1:7000")
	foreign2 := netip.MustParseAddrPort("198.51.100.2:7000")
	type step struct {
		from netip.AddrPort
		at   int64 // the window is 0..100
		want bool
	}
	for name, c := range map[string]struct {
		strict bool
		steps  []step
	}{
		"signalled, then a stranger":          {false, []step{{exactly, 1, true}, {foreign, 2, false}, {foreign, 200, false}}},
		"NAT stranger, then another":          {false, []step{{foreign, 1, true}, {foreign2, 2, false}, {foreign, 300, true}}},
		"stranger, then the known host":       {false, []step{{foreign, 1, true}, {viaNAT, 2, true}, {foreign, 3, false}}},
		"known host, then exact":              {false, []step{{otherPort, 1, true}, {exactly, 2, true}, {otherPort, 3, false}}},
		"first stranger after the window":     {false, []step{{foreign, 101, false}, {viaNAT, 102, true}}},
		"late signalled source ousts":         {false, []step{{foreign, 1, true}, {exactly, 500, true}, {foreign, 501, false}}},
		"another port after the window":       {false, []step{{otherPort, 1, true}, {netip.MustParseAddrPort("192.0.2.1:5002"), 200, false}}},
		"strict refuses strangers":            {true, []step{{foreign, 1, false}, {viaNAT, 2, true}}},
		"same host, other port in the window": {false, []step{{otherPort, 1, true}, {netip.MustParseAddrPort("192.0.2.1:5002"), 2, false}}},
	} {
		var l latch
		l.negotiate(Remote{Addr: exactly, Via: viaNAT.Addr(), Strict: c.strict}, 0, 100)
		for i, s := range c.steps {
			if got, _ := l.accepts(s.from, s.at); got != s.want {
				t.Errorf("%s, step %d: accepted %v, want %v", name, i, got, s.want)
			}
		}
	}
}

func TestLatch_RenegotiationLearnsMovedPhone(t *testing.T) {
	t.Parallel()
	sdp := netip.MustParseAddrPort("10.0.0.5:4000") // private: its packets come from the NAT's address
	before, after := netip.MustParseAddrPort("203.0.113.9:6000"), netip.MustParseAddrPort("203.0.113.9:6100")
	var l latch
	l.negotiate(Remote{Addr: sdp}, 0, 100)
	l.accepts(before, 10)
	if ok, _ := l.accepts(after, 200); ok {
		t.Fatal("a moved source was accepted outside the window")
	}
	l.negotiate(Remote{Addr: sdp}, 300, 100)
	if ok, moved := l.accepts(after, 310); !ok || !moved {
		t.Error("the moved phone was not learned after the re-INVITE")
	}
	l.negotiate(Remote{Addr: sdp}, 500, 100)
	l.accepts(after, 510)
	if ok, _ := l.accepts(before, 520); ok {
		t.Error("a source heard in this window was replaced by its equal")
	}
}

func TestLatch_AttackerNeitherRelayedNorSentTo(t *testing.T) {
	t.Parallel()
	eachLoop(t, func(t *testing.T, e *Engine) {
		c := newTestCall(t, e)
		ear := newEarpiece(c.callee)
		playTone(t, c.caller, 440)
		playTone(t, c.callee, 1000)
		ear.tone(t)
		attacker := rawSocket(t, "127.0.0.66")
		noise := codec.EncodeULaw(nil, dsp.Tone(3000, -1, 20*time.Millisecond, 8000))
		for i := range 200 {
			_, _ = attacker.WriteToUDPAddrPort(rtpPacket(uint16(i), uint32(160*i), 66, 0, noise), c.a.Local())
		}
		waitFor(t, "the attack counted", func() bool { return c.a.Stats().Ignored == 200 })
		ear.wantTone(t, "callee", 440)
		if got := c.a.Stats().Remote; got != c.caller.Local() {
			t.Errorf("media is sent to %v", got)
		}
		_ = attacker.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) // the test shows that no packet comes
		if n, err := attacker.Read(make([]byte, 100)); err == nil {
			t.Errorf("the attacker got %d bytes", n)
		}
	})
}

func TestLatch_PhoneBehindNATLearned(t *testing.T) {
	t.Parallel()
	eachLoop(t, func(t *testing.T, e *Engine) {
		a := openStream(t, e)
		phone := rawSocket(t, "127.0.0.77")
		a.SetRemote(Remote{Addr: netip.MustParseAddrPort("192.168.99.99:4000"), Formats: g711Formats(codec.PCMU, 101)})
		_, _ = phone.WriteToUDPAddrPort(rtpPacket(1, 1, 1, 0, make([]byte, 160)), a.Local())
		from := phone.LocalAddr().(*net.UDPAddr).AddrPort()
		waitFor(t, "the source learned", func() bool { return a.Stats().Remote == from })
	})
}

// accepts reports whether a packet from this source belongs to the leg, and follows the source. moved is true if the
// source is new.
func (l *latch) accepts(from netip.AddrPort, now int64) (ok, moved bool) {
	if !l.admits(from, now) {
		return false, false
	}
	return true, l.follow(from, now)
}
