package media

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/dtmf"
	"soniq/internal/protocol/media/mediatest"
	"soniq/internal/protocol/media/rtp"
	"soniq/internal/protocol/media/sdp"
)

// withoutEvents returns the formats of a phone that takes no events.
func withoutEvents(c codec.Codec) []sdp.Format { return g711Formats(c, 101)[:1] }

// A phone that negotiated no events receives the other side's digits as tones, each once, even if they arrive faster
// than tones can be sent. Audio is relayed as well.
func TestRelayEvent_TonesForLegWithoutEvents(t *testing.T) {
	t.Parallel()
	for _, codec := range []codec.Codec{codec.PCMU, codec.PCMA} {
		t.Run(codec.String(), func(t *testing.T) {
			t.Parallel()
			eachLoop(t, func(t *testing.T, e *Engine) {
				c := newTestCall(t, e)
				connect(c.callee, c.b, withoutEvents(codec))
				ear := newEarpiece(c.callee)
				if err := c.caller.SendDTMF(t.Context(), "1590*#AD", DTMFOptions{Duration: 60 * time.Millisecond,
					Gap: 40 * time.Millisecond}); err != nil {
					t.Fatal(err)
				}
				ear.wait(t, func() bool { return ear.digits == "1590*#AD" })
				if n := c.callee.Stats().DTMF; n != 0 {
					t.Errorf("%d events were sent to a phone that takes none", n)
				}
				playTone(t, c.caller, 440)
				ear.wantTone(t, "the phone afterwards", 440)
			})
		})
	}
}

// A digit is sent as an event if events were negotiated, else as tones. If neither can be sent, it is refused.
func TestQueueDigit_EventOrTone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		formats []sdp.Format
		events  uint64
	}{
		"events": {g711Formats(codec.PCMU, 101), 3},
		"tones":  {withoutEvents(codec.PCMU), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := testEngine(t, Config{}, newLoop)
			phone, leg := openStream(t, e), openStream(t, e)
			connect(phone, leg, c.formats)
			ear := newEarpiece(phone)
			for _, d := range "7#B" {
				if !leg.QueueDigit(d, 80*time.Millisecond) {
					t.Errorf("%c was not pressed", d)
				}
			}
			ear.wait(t, func() bool { return ear.digits == "7#B" })
			if n := phone.Stats().DTMF; n != c.events {
				t.Errorf("the phone got %d events, want %d", n, c.events)
			}
			if leg.QueueDigit('x', 0) {
				t.Error("x was pressed")
			}
			leg.SetDirection(false, true)
			if leg.QueueDigit('1', 0) {
				t.Error("a key was pressed on a leg that may not send")
			}
			leg.Close()
			if leg.QueueDigit('1', 0) {
				t.Error("a key was pressed on a closed leg")
			}
		})
	}
}

// TestQueueDigit_OpusWithNarrowbandEvents proves that a leg with Opus and telephone-event/8000 sends and receives digits as these events.
// Their durations have the clock of the events, not that of Opus.
// https://github.com/asterisk/asterisk/pull/779
// https://github.com/pjsip/pjproject/issues/2088
func TestQueueDigit_OpusWithNarrowbandEvents(t *testing.T) {
	t.Parallel()
	leg, phone := openStream(t, testEngine(t, Config{}, newLoop)), rawSocket(t, "127.0.0.1")
	leg.SetRemote(Remote{Addr: addrOf(phone), Formats: []sdp.Format{{PT: 111, Name: "OPUS", Rate: 48000},
		{PT: 101, Name: sdp.TelephoneEvent, Rate: 8000}}})
	ear := newEarpiece(leg)
	if !leg.QueueDigit('7', 100*time.Millisecond) {
		t.Fatal("7 was not pressed")
	}
	_ = phone.SetReadDeadline(time.Now().Add(patience))
	for end := false; !end; {
		var b [maxPacket]byte
		n, err := phone.Read(b[:])
		if err != nil {
			t.Fatal(err)
		}
		h, from, to, ok := rtp.Parse(b[:n])
		if !ok || h.PT != 101 || to-from != 4 || b[from] != 7 {
			t.Fatalf("%+v: %x is no 7", h, b[:n])
		}
		end = b[from+1]&0x80 != 0
		if d := binary.BigEndian.Uint16(b[from+2:]); d%160 != 0 || end != (d == 800) {
			t.Errorf("a duration of %d, end %v; the key is held for 800 in steps of 160", d, end)
		}
	}
	payload := make([]byte, 4)
	dtmf.PutEvent(payload, 5, 800, true)
	if _, err := phone.WriteToUDPAddrPort(rtpPacket(1, 1000, 7, 101, payload), leg.Local()); err != nil {
		t.Fatal(err)
	}
	ear.wait(t, func() bool { return ear.digits == "5" })
}

// Members of a mixer that hear a leg receive its digits as well. They come in the form that each leg takes, as long as the key is held
// down. The sender and members that do not hear it receive none.
func TestLiveDTMF_ThroughMixer(t *testing.T) {
	t.Parallel()
	e, phones := testEngine(t, Config{}, newLoop), testEngine(t, Config{}, newLoop)
	m, err := e.NewMixer()
	if err != nil {
		t.Fatal(err)
	}
	var legs []*Stream
	var ears []*earpiece
	formats := [][]sdp.Format{formatsOf(codec.PCMU), formatsOf(codec.G722), withoutEvents(codec.PCMA), formatsOf(codec.PCMU)}
	mouth := openStream(t, phones)
	for i, f := range formats {
		phone, leg := openStream(t, phones), openStream(t, e)
		if i == 0 {
			phone = mouth
		}
		connect(phone, leg, f)
		legs, ears = append(legs, leg), append(ears, newEarpiece(phone))
	}
	a, events, tones, aside := legs[0], legs[1], legs[2], legs[3]
	m.Set(map[*Stream][]*Stream{a: legs, events: {a, tones}, tones: {a, events}, aside: {events, tones}})
	stop := playTone(t, mouth, 440)
	ears[1].wantTone(t, "who takes events", 440)
	ears[2].wantTone(t, "who takes tones", 440)
	stop()
	ears[2].reset()
	for _, keys := range []struct {
		digits string
		long   time.Duration
	}{{"5", 600 * time.Millisecond}, {"17#", 80 * time.Millisecond}} {
		if err := mouth.SendDTMF(t.Context(), keys.digits, DTMFOptions{Duration: keys.long}); err != nil {
			t.Fatal(err)
		}
	}
	ears[1].wait(t, func() bool { return ears[1].digits == "517#" })
	heard := ears[2].wait(t, func() bool { return ears[2].digits == "517#" })
	if d := dualToneTime(heard, 770, 1336); d < 500*time.Millisecond || d > 700*time.Millisecond {
		t.Errorf("a key held for 600 ms was heard for %s", d)
	}
	if !a.QueueDigitToListeners('9', 0) {
		t.Error("a key was shared with nobody")
	}
	ears[1].wait(t, func() bool { return ears[1].digits == "517#9" })
	ears[2].wait(t, func() bool { return ears[2].digits == "517#9" })
	if !events.QueueDigitToListeners('0', 0) { // all other members hear this leg, so that their earlier digits have been sent
		t.Error("a key was shared with nobody")
	}
	ears[0].wait(t, func() bool { return ears[0].digits == "0" })
	ears[3].wait(t, func() bool { return ears[3].digits == "0" })
	m.Close()
	if a.QueueDigitToListeners('1', 0) {
		t.Error("a key was shared after the mixer's end")
	}
}

// dualToneTime returns how long two tones sound at once.
func dualToneTime(pcm []int16, low, high float64) (d time.Duration) {
	const part = 160
	for i := 0; i+part <= len(pcm); i += part {
		if mediatest.Pure(pcm[i:i+part], low, 8000) > 0.2 && mediatest.Pure(pcm[i:i+part], high, 8000) > 0.2 {
			d += 20 * time.Millisecond
		}
	}
	return d
}

// longKey sends the packets of a key that is held for 9 s: the segment, the duration in it, and whether it is the end.
func longKey(send func(segment uint32, duration int, end bool)) {
	for segment, durations := range [][]int{{160, 8000, 65440, 65535}, {160, 4000, 8000, 8000, 8000}} {
		for i, d := range durations {
			send(uint32(segment), d, segment == 1 && i > 1)
		}
	}
}

// A key that is held for 9 s comes in two segments (RFC 4733 §2.5.1.3). It is one digit for the leg. It is also one for the leg that it is
// relayed to: with the same timeline, with another one, with another clock, and as tones.
// https://github.com/unispeech/asterisk-unimrcp/issues/44
func TestOnDTMF_LongKeyIsOneDigit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		formats []sdp.Format // of the leg that it is relayed to
		audio   bool         // its timeline follows the source
		tries   int          // a tone has a gap if this process gets no CPU time meanwhile
	}{
		"same timeline":    {g711Formats(codec.PCMU, 101), true, 1},
		"another timeline": {g711Formats(codec.PCMU, 101), false, 1},
		"another clock":    {append(withoutEvents(codec.PCMU), sdp.Format{PT: 110, Name: sdp.TelephoneEvent, Rate: 48000}), false, 1},
		"tones":            {withoutEvents(codec.PCMU), false, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own, heard, events := "", "", uint64(0)
			for range c.tries {
				if own, heard, events = longKeyDigits(t, c.formats, c.audio); heard == "56" {
					break
				}
			}
			if own != "56" || heard != "56" || events != 2 {
				t.Errorf("5 and 6 were %q for the leg and %q for the other one, %d events counted", own, heard, events)
			}
		})
	}
}

// longKeyDigits sends the key 5, held for 9 s, and the key 6. It returns the digits of the leg, those of the leg with these formats that it
// is relayed to, and the number of events counted. audio: the timeline of that one follows the source.
func longKeyDigits(t *testing.T, formats []sdp.Format, audio bool) (own, heard string, events uint64) {
	t.Helper()
	e := testEngine(t, Config{}, newLoop)
	a, b, source, phone := openStream(t, e), openStream(t, e), rawSocket(t, "127.0.0.1"), openStream(t, e)
	a.SetRemote(Remote{Addr: addrOf(source), Formats: g711Formats(codec.PCMU, 101)})
	connect(phone, b, formats)
	ear, leg := newEarpiece(phone), newEarpiece(a)
	Bridge(a, b)
	seq := uint16(100)
	write := func(ts uint32, pt uint8, payload []byte) {
		seq++
		if _, err := source.WriteToUDPAddrPort(rtpPacket(seq, ts, 7, pt, payload), a.Local()); err != nil {
			t.Fatal(err)
		}
	}
	if audio {
		write(840, 0, make([]byte, 160))
	} else if err := b.Send(t.Context(), make([]int16, 160)); err != nil { // our own audio came before
		t.Fatal(err)
	}
	longKey(func(segment uint32, duration int, end bool) {
		payload := make([]byte, 4)
		dtmf.PutEvent(payload, 5, duration, end)
		write(1000+segment*0xFFFF, 101, payload)
	})
	sent := uint64(seq - 100)
	waitFor(t, "the packets of 5", func() bool { return a.Stats().Received == sent })
	ear.wait(t, func() bool { return strings.HasPrefix(ear.digits, "5") })
	payload := make([]byte, 4)
	dtmf.PutEvent(payload, 6, 800, true)
	write(1000+0xFFFF+16000, 101, payload)
	leg.wait(t, func() bool { return strings.HasSuffix(leg.digits, "6") })
	ear.wait(t, func() bool { return strings.HasSuffix(ear.digits, "6") })
	return leg.digits, ear.digits, uint64(a.Stats().DTMF)
}

// A packet of a digit that is overtaken by packets of the next digit is not counted as a third digit.
func TestOnDTMF_ReorderedEventNotCountedTwice(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{}, newLoop)
	s, peer := openStream(t, e), rawSocket(t, "127.0.0.1")
	s.SetRemote(Remote{Addr: addrOf(peer), Formats: formatsOf(codec.PCMU)})
	ear := newEarpiece(s)
	send := func(seq int, ts uint32, digit rune, end bool) {
		payload := make([]byte, 4)
		code, _ := dtmf.Code(digit)
		dtmf.PutEvent(payload, code, 800, end)
		if _, err := peer.WriteToUDPAddrPort(rtpPacket(uint16(seq), ts, 7, 101, payload), s.Local()); err != nil {
			t.Fatal(err)
		}
	}
	send(65533, 1000, '1', false)
	send(65534, 1000, '1', true)
	send(0, 3000, '2', false)
	send(65535, 1000, '1', true) // its end, repeated
	send(1, 3000, '2', true)
	send(2, 9000, '3', false)
	ear.wait(t, func() bool { return strings.HasSuffix(ear.digits, "3") })
	if ear.digits != "123" {
		t.Errorf("1, 2 and 3 were heard as %s", ear.digits)
	}
}

// TestRelayEvent_TimestampsDiffer relays two digits at the same time. Their timestamps differ, so the receiver counts two digits.
func TestRelayEvent_TimestampsDiffer(t *testing.T) {
	t.Parallel()
	var o outbound
	o.init()
	o.started, o.sentAt = true, 1e9
	from, payload := &Stream{}, make([]byte, 4)
	relay := func(code byte, ts uint32) uint32 {
		dtmf.PutEvent(payload, code, 800, true)
		if !o.isNewEvent(from, rtp.Header{SSRC: 7, TS: ts}, payload, o.sentAt) {
			t.Errorf("digit %d is no new one", code)
		}
		o.ts = o.event.startTS
		return o.ts
	}
	before := o.ts
	first := relay(5, 1000)
	if second := relay(6, 2000); int32(first-before) <= 0 || int32(second-first) <= 0 {
		t.Errorf("timestamps %d and %d after %d", first, second, before)
	}
}
