package media

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/mediatest"
	"soniq/internal/protocol/media/rtp"
	"soniq/internal/protocol/media/sdp"
)

// formatsOf returns the formats of a test phone: one codec and its events.
func formatsOf(c codec.Codec) []sdp.Format {
	f := sdp.SupportedFormats[slices.IndexFunc(sdp.SupportedFormats, func(f sdp.Format) bool { g, ok := f.Codec(); return ok && g == c })]
	e := sdp.Format{PT: 101, Name: sdp.TelephoneEvent, Rate: c.Clock()}
	return []sdp.Format{f, e}
}

// legOf opens a phone with one codec and the leg that serves it.
func legOf(t testing.TB, e, phones *Engine, c codec.Codec) (phone, leg *Stream) {
	t.Helper()
	phone, leg = openStream(t, phones), openStream(t, e)
	connect(phone, leg, formatsOf(c))
	return phone, leg
}

// skipUnencodable skips the test if this machine lacks the library for one of the codecs.
func skipUnencodable(t *testing.T, codecs ...codec.Codec) {
	for _, c := range codecs {
		if !c.CanEncode() {
			t.Skipf("%v cannot be spoken here", c)
		}
	}
}

// With any two codecs, both sides hear each other and their digits pass. A relay does not decode if the codecs permit
// it.
func TestBridge_AnyTwoCodecs(t *testing.T) {
	t.Parallel()
	for x := range codec.Count {
		for y := range x + 1 {
			t.Run(fmt.Sprintf("%v and %v", x, y), func(t *testing.T) {
				t.Parallel()
				skipUnencodable(t, x, y)
				e, phones := testEngine(t, Config{}, newLoop), testEngine(t, Config{}, newLoop)
				p, a := legOf(t, e, phones, x)
				q, b := legOf(t, e, phones, y)
				Bridge(a, b)
				atP, atQ := newEarpiece(p), newEarpiece(q)
				stop := playTone(t, p, 440)
				playTone(t, q, 1000)
				waitFor(t, "the callee hears 440 Hz", func() bool { return mediatest.NearHz(atQ.tone(t), 440) })
				waitFor(t, "the caller hears 1000 Hz", func() bool { return mediatest.NearHz(atP.tone(t), 1000) })
				stop()
				if err := p.SendDTMF(t.Context(), "17#", DTMFOptions{}); err != nil {
					t.Fatal(err)
				}
				atQ.wait(t, func() bool { return atQ.digits == "17#" })
				a.in.mu.Lock()
				defer a.in.mu.Unlock()
				if relayed := x == y || x.IsG711() && y.IsG711(); a.in.transcoded == relayed {
					t.Errorf("converted: %v", a.in.transcoded)
				}
			})
		}
	}
}

// A phone that receives relayed and transcoded packets must see one source: consecutive sequence numbers and a
// continuous timeline.
func TestBridge_TranscodedDigitsShareTimeline(t *testing.T) {
	t.Parallel()
	e, phones := testEngine(t, Config{}, newLoop), testEngine(t, Config{}, newLoop)
	p, a := legOf(t, e, phones, codec.G722)
	sink := rawSocket(t, "127.0.0.1")
	b := openStream(t, e)
	b.SetRemote(Remote{Addr: addrOf(sink), Formats: formatsOf(codec.PCMU)})
	Bridge(a, b)
	stop := playTone(t, p, 440)
	for range 10 {
		readRTP(t, sink)
	}
	stop()
	last, begun, events := readRTP(t, sink), map[uint32]bool{}, 0
	sent := make(chan error, 1)
	go func() { sent <- p.SendDTMF(t.Context(), "5", DTMFOptions{}) }()
	for range 40 {
		h := readRTP(t, sink)
		again := h.PT == 101 && begun[h.TS] // all packets of a digit have the same timestamp, even with silence in between
		if h.Seq != last.Seq+1 || h.SSRC != last.SSRC || !again && int32(h.TS-last.TS) < 0 {
			t.Fatalf("%+v after %+v", h, last)
		}
		if !again {
			last.TS = h.TS
		}
		if last.Seq, last.SSRC = h.Seq, h.SSRC; h.PT == 101 {
			events++
			begun[h.TS] = true
		}
	}
	if err := <-sent; err != nil || len(begun) != 1 || events != 7 {
		t.Errorf("%v; one digit came as %d packets with %d times", err, events, len(begun))
	}
}

func TestMixer_ConferenceExcludesSelf(t *testing.T) {
	t.Parallel()
	skipUnencodable(t, codec.Opus)
	e, phones := testEngine(t, Config{}, newLoop), testEngine(t, Config{}, newLoop)
	m, err := e.NewMixer()
	if err != nil {
		t.Fatal(err)
	}
	tones := []float64{400, 700, 1100}
	var legs []*Stream
	var ears []*earpiece
	for i, c := range []codec.Codec{codec.PCMU, codec.G722, codec.Opus} {
		phone, leg := legOf(t, e, phones, c)
		playTone(t, phone, tones[i])
		legs, ears = append(legs, leg), append(ears, newEarpiece(phone))
	}
	silentPhone, silentLeg := legOf(t, e, phones, codec.PCMA)
	ears = append(ears, newEarpiece(silentPhone))
	all := legs
	m.Set(map[*Stream][]*Stream{legs[0]: all, legs[1]: all, legs[2]: all, silentLeg: all})
	for i, ear := range ears {
		waitFor(t, fmt.Sprintf("phone %d hears the others and not itself", i), func() bool {
			ear.reset()
			pcm := ear.wait(t, func() bool { return len(ear.pcm) >= 1600 })
			for k, hz := range tones {
				if heard := mediatest.Pure(pcm, hz, 8000) > 0.1; heard != (k != i) {
					return false
				}
			}
			return true
		})
	}
	m.Close()
	m.Close()
}

func TestMixer_SumSaturates(t *testing.T) {
	t.Parallel()
	m := &Mixer{}
	a, b := &mixerMember{talking: true}, &mixerMember{talking: true}
	for i := range a.frame {
		a.frame[i], b.frame[i] = 30000, 30000
	}
	if got := m.mix([]*mixerMember{a, b, {}})[5]; got != 32767 {
		t.Errorf("30000 + 30000 is %d", got)
	}
	if got := m.mix([]*mixerMember{{}, {}})[5]; got != 0 {
		t.Errorf("nobody is %d", got)
	}
}

// With a whisper, the agent hears the caller and the coach; the caller hears the agent alone.
func TestMixer_WhisperAndLeave(t *testing.T) {
	t.Parallel()
	e, phones := testEngine(t, Config{}, newLoop), testEngine(t, Config{}, newLoop)
	caller, a := legOf(t, e, phones, codec.PCMU)
	agent, b := legOf(t, e, phones, codec.PCMU)
	coach, c := legOf(t, e, phones, codec.PCMU)
	Bridge(a, b)
	m, _ := e.NewMixer()
	m.Set(map[*Stream][]*Stream{a: {b}, b: {a, c}, c: {a, b}})
	atCaller, atAgent := newEarpiece(caller), newEarpiece(agent)
	playTone(t, agent, 440)
	playTone(t, coach, 1000)
	waitFor(t, "the caller hears the agent", func() bool { return mediatest.NearHz(atCaller.tone(t), 440) })
	waitFor(t, "the agent hears the coach", func() bool { return mediatest.NearHz(atAgent.tone(t), 1000) })
	Bridge(a, b) // the coach leaves the mixer's other members
	waitFor(t, "the caller hears the agent again", func() bool { return mediatest.NearHz(atCaller.tone(t), 440) })
	sent := c.Stats().Sent
	m.Set(nil)
	before := b.Stats().Received
	waitFor(t, "more from the agent", func() bool { return b.Stats().Received > before+5 })
	if got := c.Stats().Sent; got > sent+20 {
		t.Errorf("%d packets to a leg that left", got-sent)
	}
}

func TestSetMuted_NotRelayed(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{}, newLoop)
	c := newTestCall(t, e)
	ear := newEarpiece(c.callee)
	playTone(t, c.caller, 440)
	ear.tone(t)
	c.a.SetMuted(true)
	sent, before := c.b.Stats().Sent, c.a.Stats().Received
	waitFor(t, "more packets from the caller", func() bool { return c.a.Stats().Received > before+10 })
	if got := c.b.Stats().Sent; got > sent+1 {
		t.Errorf("%d packets of a muted leg", got-sent)
	}
	c.a.SetMuted(false)
	ear.wantTone(t, "the callee after the mute", 440)
}

func TestEngineClose_WithRunningMixers(t *testing.T) {
	t.Parallel()
	e, phones := testEngine(t, Config{}, newLoop), testEngine(t, Config{}, newLoop)
	p, a := legOf(t, e, phones, codec.G722)
	_, b := legOf(t, e, phones, codec.PCMU)
	_, c := legOf(t, e, phones, codec.PCMA)
	Bridge(a, b)
	playTone(t, p, 440)
	waitFor(t, "the conversion", func() bool { return b.Stats().Sent > 5 })
	m, _ := e.NewMixer()
	m.Set(map[*Stream][]*Stream{c: {a}})
	e.Close()
	if _, err := e.NewMixer(); err != ErrClosed {
		t.Errorf("a mixer of a closed engine: %v", err)
	}
	m.Set(map[*Stream][]*Stream{c: {a}})
}

// BenchmarkMixer measures one tick of a conference: the cost of 20 ms.
func BenchmarkMixer(b *testing.B) {
	for _, c := range []codec.Codec{codec.PCMU, codec.G722, codec.Opus} {
		for _, n := range []int{2, 10} {
			if !c.CanEncode() {
				continue
			}
			b.Run(fmt.Sprintf("%v/%d", c, n), func(b *testing.B) { benchMixer(b, c, n) })
		}
	}
}

func benchMixer(b *testing.B, c codec.Codec, n int) {
	e := testEngine(b, Config{}, newLoop)
	sink := rawSocket(b, "127.0.0.1")
	m := &Mixer{engine: e, wake: make(chan struct{}, 1)}
	enc := codec.NewEncoder(c)
	payload := enc.Encode(nil, dsp.Tone(440, -10, 20*time.Millisecond, enc.Rate()))
	for range n {
		s := openStream(b, e)
		s.SetRemote(Remote{Addr: addrOf(sink), Formats: formatsOf(c)})
		m.members = append(m.members, &mixerMember{stream: s, jitter: rtp.NewJitterBuffer(mixRate), listens: true})
	}
	for _, p := range m.members {
		for _, q := range m.members {
			if p != q {
				p.sources = append(p.sources, q)
			}
		}
	}
	running, seq := make(chan struct{}), 0
	b.ReportAllocs()
	for b.Loop() {
		now := e.clock()
		for _, p := range m.members {
			p.jitter.Ring.Push(rtp.Header{Seq: uint16(seq), TS: uint32(seq * c.Clock() / 50), SSRC: 1}, rtp.Kind(c), payload, now)
		}
		m.tick(running, now)
		seq++
	}
}
