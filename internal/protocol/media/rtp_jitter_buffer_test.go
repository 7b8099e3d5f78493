package media

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// network simulates the path between a sender with one codec and a jitter buffer.
type network struct {
	codec  Codec
	pcm    []int16           // the sender's audio, at the codec's rate
	lost   func(n int) bool  // nil: none
	jitter func(n int) int64 // ns on top of a constant; nil: none
	skew   float64           // the sender's clock is faster by this share
	pause  func(n int) bool  // packets not sent, their numbers not used
}

// run returns the output at 16 kHz, and the jitter buffer for its counters.
func (w network) run(t *testing.T) ([]int16, *jitterBuffer) {
	t.Helper()
	type arrival struct {
		at int64
		f  ringFrame
	}
	var all []arrival
	e, seq := newEncoder(w.codec), uint16(65500)
	n := e.rate() / 50
	for i := 0; (i+1)*n <= len(w.pcm); i++ {
		payload := e.encode(nil, w.pcm[i*n:(i+1)*n])
		if w.pause != nil && w.pause(i) {
			continue
		}
		h := rtpHeader{seq: seq, ts: uint32(0xFFFFF000 + i*w.codec.clock()/50), ssrc: 1}
		seq++
		if w.lost != nil && w.lost(i) {
			continue
		}
		at := int64(1e9) + int64(float64(int64(i)*frameTime)/(1+w.skew))
		if w.jitter != nil {
			at += w.jitter(i)
		}
		all = append(all, arrival{at, ringFrame{rtpHeader: h, kind: payloadKind(w.codec), payload: payload}})
	}
	slices.SortStableFunc(all, func(a, b arrival) int { return int(a.at - b.at) })
	p := newJitterBuffer(16000)
	var out []int16
	dst := make([]int16, 320)
	for now := int64(1e9 + 7e6); len(all) > 0; now += frameTime {
		for ; len(all) > 0 && all[0].at <= now; all = all[1:] {
			p.ring.push(all[0].f.rtpHeader, all[0].f.kind, all[0].f.payload, all[0].at)
		}
		if p.pull(dst, now) {
			out = append(out, dst...)
		}
	}
	return out, p
}

// steady returns the share of 40 ms pieces after the first second in which a tone is clean.
func steady(pcm []int16, hz float64) float64 {
	good, all := 0, 0
	for i := 16000; i+640 <= len(pcm); i += 640 {
		all++
		if pure(pcm[i:i+640], hz, 16000) > 0.9 {
			good++
		}
	}
	return float64(good) / float64(max(all, 1))
}

// pure returns the share of the energy at hz. Below -20 dBFS it returns 0.
func pure(pcm []int16, hz float64, rate int) float64 {
	var re, im, sum float64
	for i, v := range pcm {
		s, c := math.Sincos(2 * math.Pi * hz * float64(i) / float64(rate))
		re, im, sum = re+float64(v)*c, im+float64(v)*s, sum+float64(v)*float64(v)
	}
	if n := float64(len(pcm)); sum/n > 0.5*3277*3277 {
		return 2 * (re*re + im*im) / (n * sum)
	}
	return 0
}

func toneFor(c Codec, d time.Duration) []int16 { return Tone(400, -10, d, newEncoder(c).rate()) }

func TestJitterBuffer_CleanNetwork(t *testing.T) {
	t.Parallel()
	for c := range codecCount {
		if !c.canEncode() {
			continue
		}
		out, p := network{codec: c, pcm: toneFor(c, 4*time.Second)}.run(t)
		if s := steady(out, 400); s < 1 || p.late+p.lost != 0 || p.concealed > 0 {
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
	for c := range codecCount {
		if !c.canEncode() {
			continue
		}
		r := rand.New(rand.NewPCG(7, uint64(c)))
		out, p := network{codec: c, pcm: toneFor(c, 20*time.Second),
			lost:   func(int) bool { return r.IntN(100) < 5 },
			jitter: func(int) int64 { return r.Int64N(40e6) }}.run(t)
		if s := steady(out, 400); s < 0.93 {
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
		out, p := network{codec: PCMU, pcm: toneFor(PCMU, 2*time.Minute), skew: skew}.run(t)
		if s := steady(out, 400); s < 0.99 || p.late > 0 {
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
	out, p := network{codec: PCMU, pcm: toneFor(PCMU, 4*time.Second), pause: func(n int) bool { return n/25%2 == 1 }}.run(t)
	quiet, loud := 0, 0
	for i := 16000; i+320 <= len(out); i += 320 {
		if isSilent(out[i : i+320]) {
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
	out, _ := network{codec: PCMU, pcm: toneFor(PCMU, 10*time.Second), jitter: func(n int) int64 {
		if n >= 100 && n < 115 {
			return int64(115-n) * frameTime
		}
		return 0
	}}.run(t)
	if s := steady(out[4*16000:], 400); s < 1 {
		t.Errorf("%.3f clean after the burst", s)
	}
}

// The delay of the network or the sender increases permanently from one packet to the next, slightly or much: audio
// returns.
func TestJitterBuffer_PermanentDelayChange(t *testing.T) {
	t.Parallel()
	for _, by := range []int64{30e6, 50e6, 55e6, 60e6, 90e6, 110e6, 150e6, 250e6, 400e6, 900e6} {
		out, p := network{codec: PCMU, pcm: toneFor(PCMU, 12*time.Second), jitter: func(n int) int64 {
			if n >= 200 {
				return by
			}
			return 0
		}}.run(t)
		if s := steady(out[7*16000:], 400); s < 0.99 {
			t.Errorf("later by %d ms: %.3f clean, %d late", by/1e6, s, p.late)
		}
	}
}

func TestJitterBuffer_Reordering(t *testing.T) {
	t.Parallel()
	out, p := network{codec: G722, pcm: toneFor(G722, 3*time.Second), jitter: func(n int) int64 { return int64(n%2)*0 + int64((n+1)%2)*25e6 }}.run(t)
	if s := steady(out, 400); s < 1 || p.lost+p.late > 0 {
		t.Errorf("%.2f clean, %d lost, %d late", s, p.lost, p.late)
	}
}

func FuzzJitterBuffer(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, dst := newJitterBuffer(16000), make([]int16, 320)
		now := int64(1e9)
		for ; len(b) >= 9; b = b[9:] {
			h := rtpHeader{marker: b[0]&1 == 1, seq: uint16(b[1]) << (b[0] & 8), ts: uint32(b[2])<<(b[0]>>3) | uint32(b[3]), ssrc: uint32(b[4] & 1)}
			p.ring.push(h, payloadKind(b[5]&3), b[:int(b[6])%len(b)], now)
			now += int64(b[7]) * 1e6
			p.pull(dst, now)
			if len(p.buffer.buf) > 64000 {
				t.Fatalf("track of %d samples", len(p.buffer.buf))
			}
		}
	})
}

func BenchmarkJitterBuffer(b *testing.B) {
	for c := range codecCount {
		if !c.canEncode() {
			continue
		}
		b.Run(c.String(), func(b *testing.B) {
			e := newEncoder(c)
			payload := e.encode(nil, Tone(440, -10, 20*time.Millisecond, e.rate()))
			p, dst := newJitterBuffer(16000), make([]int16, 320)
			b.ReportAllocs()
			now, n := int64(1e9), 0
			for b.Loop() {
				p.ring.push(rtpHeader{seq: uint16(n), ts: uint32(n * c.clock() / 50), ssrc: 1}, payloadKind(c), payload, now)
				p.pull(dst, now)
				now, n = now+frameTime, n+1
			}
		})
	}
}
