package rtp

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/mediatest"
)

// network simulates the path between a sender with one codec and a jitter buffer.
type network struct {
	codec  codec.Codec
	pcm    []int16           // the sender's audio, at the codec's rate
	lost   func(n int) bool  // nil: none
	jitter func(n int) int64 // ns on top of a constant; nil: none
	skew   float64           // the sender's clock is faster by this share
	pause  func(n int) bool  // packets not sent, their numbers not used
}

// run returns the output at 16 kHz, and the jitter buffer for its counters.
func (w network) run(t *testing.T) ([]int16, *JitterBuffer) {
	t.Helper()
	type arrival struct {
		at int64
		f  Frame
	}
	var all []arrival
	e, seq := codec.NewEncoder(w.codec), uint16(65500)
	n := e.Rate() / 50
	for i := 0; (i+1)*n <= len(w.pcm); i++ {
		payload := e.Encode(nil, w.pcm[i*n:(i+1)*n])
		if w.pause != nil && w.pause(i) {
			continue
		}
		h := Header{Seq: seq, TS: uint32(0xFFFFF000 + i*w.codec.Clock()/50), SSRC: 1}
		seq++
		if w.lost != nil && w.lost(i) {
			continue
		}
		at := int64(1e9) + int64(float64(int64(i)*FrameTime)/(1+w.skew))
		if w.jitter != nil {
			at += w.jitter(i)
		}
		all = append(all, arrival{at, Frame{Header: h, Kind: Kind(w.codec), Payload: payload}})
	}
	slices.SortStableFunc(all, func(a, b arrival) int { return int(a.at - b.at) })
	p := NewJitterBuffer(16000)
	var out []int16
	dst := make([]int16, 320)
	for now := int64(1e9 + 7e6); len(all) > 0; now += FrameTime {
		for ; len(all) > 0 && all[0].at <= now; all = all[1:] {
			p.Ring.Push(all[0].f.Header, all[0].f.Kind, all[0].f.Payload, all[0].at)
		}
		if p.Pull(dst, now) {
			out = append(out, dst...)
		}
	}
	return out, p
}

func toneFor(c codec.Codec, d time.Duration) []int16 {
	return dsp.Tone(400, -10, d, codec.NewEncoder(c).Rate())
}

func TestJitterBuffer_CleanNetwork(t *testing.T) {
	t.Parallel()
	for c := range codec.Count {
		if !c.CanEncode() {
			continue
		}
		out, p := network{codec: c, pcm: toneFor(c, 4*time.Second)}.run(t)
		if s := mediatest.Steady(out, 400); s < 1 || p.late+p.lost != 0 || p.concealed > 0 {
			t.Errorf("%v: %.2f clean, %d late, %d lost, %d concealed", c, s, p.late, p.lost, p.concealed)
		}
		if d := p.delay.target(); d > 60*16 {
			t.Errorf("%v: waits %d ms without need", c, d/16)
		}
	}
}

// With 5 % loss and 40 ms of jitter the tone continues.
func TestJitterBuffer_LossAndJitter(t *testing.T) {
	t.Parallel()
	for c := range codec.Count {
		if !c.CanEncode() {
			continue
		}
		r := rand.New(rand.NewPCG(7, uint64(c)))
		out, p := network{codec: c, pcm: toneFor(c, 20*time.Second),
			lost:   func(int) bool { return r.IntN(100) < 5 },
			jitter: func(int) int64 { return r.Int64N(40e6) }}.run(t)
		if s := mediatest.Steady(out, 400); s < 0.93 {
			t.Errorf("%v: %.3f clean", c, s)
		}
		if p.lost < 20 || p.lost > 90 || p.late > 30 {
			t.Errorf("%v: %d of 1000 lost, %d late", c, p.lost, p.late)
		}
		if d := p.delay.target() / 16; d < 50 || d > 90 {
			t.Errorf("%v: waits %d ms", c, d)
		}
	}
}

// A sender's clock is off by 500 ppm for two minutes: 60 ms, corrected without a gap.
func TestJitterBuffer_ClockSkew(t *testing.T) {
	t.Parallel()
	for _, skew := range []float64{-0.0005, 0.0005} {
		out, p := network{codec: codec.PCMU, pcm: toneFor(codec.PCMU, 2*time.Minute), skew: skew}.run(t)
		if s := mediatest.Steady(out, 400); s < 0.99 || p.late > 0 {
			t.Errorf("%+.0f ppm: %.3f clean, %d late", 1e6*skew, s, p.late)
		}
		want := 120 / (1 + skew)
		if d := float64(len(out))/16000 - want; math.Abs(d) > 0.2 {
			t.Errorf("%+.0f ppm: %.3f s too much", 1e6*skew, d)
		}
	}
}

// A sender with silence suppression sends no packets; its sequence numbers continue without a gap.
func TestJitterBuffer_SilenceSuppression(t *testing.T) {
	t.Parallel()
	out, p := network{codec: codec.PCMU, pcm: toneFor(codec.PCMU, 4*time.Second), pause: func(n int) bool { return n/25%2 == 1 }}.run(t)
	quiet, loud := 0, 0
	for i := 16000; i+320 <= len(out); i += 320 {
		if dsp.IsSilent(out[i : i+320]) {
			quiet++
		} else {
			loud++
		}
	}
	if p.lost != 0 || quiet < 45 || loud < 65 {
		t.Errorf("%d lost, %d frames quiet, %d loud", p.lost, quiet, loud)
	}
}

// 300 ms without packets, then all of them at once: audio and the normal delay return.
func TestJitterBuffer_RecoversFromBurst(t *testing.T) {
	t.Parallel()
	out, _ := network{codec: codec.PCMU, pcm: toneFor(codec.PCMU, 10*time.Second), jitter: func(n int) int64 {
		if n >= 100 && n < 115 {
			return int64(115-n) * FrameTime
		}
		return 0
	}}.run(t)
	if s := mediatest.Steady(out[4*16000:], 400); s < 1 {
		t.Errorf("%.3f clean after the burst", s)
	}
}

// The delay of the network or the sender increases permanently from one packet to the next, slightly or much: audio
// returns.
func TestJitterBuffer_PermanentDelayChange(t *testing.T) {
	t.Parallel()
	for _, by := range []int64{30e6, 50e6, 55e6, 60e6, 90e6, 110e6, 150e6, 250e6, 400e6, 900e6} {
		out, p := network{codec: codec.PCMU, pcm: toneFor(codec.PCMU, 12*time.Second), jitter: func(n int) int64 {
			if n >= 200 {
				return by
			}
			return 0
		}}.run(t)
		if s := mediatest.Steady(out[7*16000:], 400); s < 0.99 {
			t.Errorf("later by %d ms: %.3f clean, %d late", by/1e6, s, p.late)
		}
	}
}

func TestJitterBuffer_Reordering(t *testing.T) {
	t.Parallel()
	out, p := network{codec: codec.G722, pcm: toneFor(codec.G722, 3*time.Second), jitter: func(n int) int64 {
		return int64(n%2)*0 + int64((n+1)%2)*25e6
	}}.run(t)
	if s := mediatest.Steady(out, 400); s < 1 || p.lost+p.late > 0 {
		t.Errorf("%.2f clean, %d lost, %d late", s, p.lost, p.late)
	}
}

func FuzzJitterBuffer(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, dst := NewJitterBuffer(16000), make([]int16, 320)
		now := int64(1e9)
		for ; len(b) >= 9; b = b[9:] {
			h := Header{Marker: b[0]&1 == 1, Seq: uint16(b[1]) << (b[0] & 8), TS: uint32(b[2])<<(b[0]>>3) | uint32(b[3]),
				SSRC: uint32(b[4] & 1)}
			p.Ring.Push(h, Kind(b[5]&3), b[:int(b[6])%len(b)], now)
			now += int64(b[7]) * 1e6
			p.Pull(dst, now)
			if len(p.buffer.Buf) > 64000 {
				t.Fatalf("track of %d samples", len(p.buffer.Buf))
			}
		}
	})
}

func BenchmarkJitterBuffer(b *testing.B) {
	for c := range codec.Count {
		if !c.CanEncode() {
			continue
		}
		b.Run(c.String(), func(b *testing.B) {
			e := codec.NewEncoder(c)
			payload := e.Encode(nil, dsp.Tone(440, -10, 20*time.Millisecond, e.Rate()))
			p, dst := NewJitterBuffer(16000), make([]int16, 320)
			b.ReportAllocs()
			now, n := int64(1e9), 0
			for b.Loop() {
				p.Ring.Push(Header{Seq: uint16(n), TS: uint32(n * c.Clock() / 50), SSRC: 1}, Kind(c), payload, now)
				p.Pull(dst, now)
				now, n = now+FrameTime, n+1
			}
		})
	}
}
