package media

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// inFrames passes pcm to f in pieces of n samples.
func inFrames(pcm []int16, n int, f func(dst, src []int16) []int16) (out []int16) {
	for ; len(pcm) >= n; pcm = pcm[n:] {
		out = f(out, pcm[:n])
	}
	return out
}

func TestCodec_EveryCodecCarriesTone(t *testing.T) {
	t.Parallel()
	for c := range codecCount {
		if !c.canEncode() {
			t.Logf("%v cannot be spoken here", c)
			continue
		}
		e, d := newEncoder(c), newDecoder(c)
		in := Tone(700, -10, time.Second, e.rate())
		out := inFrames(in, e.rate()/50, func(dst, src []int16) []int16 { return d.decode(dst, e.encode(nil, src)) })
		if hz, db := DominantFrequency(out[len(out)/2:], d.rate()); !nearHz(hz, 700) || math.Abs(db+10) > 1 || len(out) != d.rate() {
			t.Errorf("%v: %.0f Hz at %.1f dBFS, %d samples", c, hz, db, len(out))
		}
	}
}

func TestLocalOffer_OpusOnlyWithLibrary(t *testing.T) {
	t.Parallel()
	first, _ := LocalOffer().Formats[0].Codec()
	if want := map[bool]Codec{true: Opus, false: G722}[libopus() != nil]; first != want {
		t.Errorf("our offer begins with %v", first)
	}
}

func TestOpusDecoder_RandomPackets(t *testing.T) {
	t.Parallel()
	r, d := rand.New(rand.NewPCG(3, 4)), newOpusDecoder()
	for n := range 3000 {
		b := make([]byte, n%90)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		if got := len(d.decode(nil, b)); got > opusMaxSamples {
			t.Fatalf("%d samples", got)
		}
	}
}

func FuzzOpusDecoder(f *testing.F) {
	if e := newOpusEncoder(); e != nil {
		f.Add(e.encode(nil, Tone(300, -6, 20*time.Millisecond, 16000)))
	}
	f.Add([]byte{0x0B, 0x83, 1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) { newOpusDecoder().decode(nil, b) })
}

func TestOpus_PacketDuration(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		b    []byte
		want int
	}{{nil, 0}, {[]byte{0x08}, 320}, {[]byte{0x18}, 960}, {[]byte{0x69}, 320 * 2}, {[]byte{0xF8}, 320}, {[]byte{0x83, 3}, 120}, {[]byte{0x1B, 63}, 0}} {
		if got := opusSamples(c.b); got != c.want {
			t.Errorf("%x lasts %d samples, want %d", c.b, got, c.want)
		}
	}
}

func TestResampler_KeepsTonesWithoutAliasing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to int
		hz, db   float64 // of the input; below -60 dB the tone must be filtered out
	}{{8000, 16000, 1000, -10}, {16000, 8000, 3000, -10}, {16000, 8000, 5000, -99}, {48000, 16000, 6400, -10}, {48000, 16000, 9500, -99},
		{44100, 16000, 440, -10}, {44100, 16000, 12000, -99}, {11025, 16000, 2000, -10}, {16000, 48000, 6000, -10}} {
		t.Run(fmt.Sprintf("%d Hz from %d to %d", int(c.hz), c.from, c.to), func(t *testing.T) {
			t.Parallel()
			r := newResampler(c.from, c.to)
			in := Tone(c.hz, -10, 500*time.Millisecond, c.from)
			out := inFrames(in, c.from/100, r.process)
			if d := len(out) - len(in)/(c.from/100)*(c.from/100)*c.to/c.from; d < -1 || d > 1 {
				t.Errorf("%d samples of %d", len(out), len(in))
			}
			out = out[len(out)/4 : len(out)*3/4]
			hz, db := DominantFrequency(out, c.to)
			if c.db > -60 && (math.Abs(hz-c.hz) > 1 || math.Abs(db-c.db) > 0.5) || c.db < -60 && db > -60 {
				t.Errorf("%.1f Hz at %.1f dBFS", hz, db)
			}
		})
	}
}

func BenchmarkCoder(b *testing.B) {
	for c := range codecCount {
		if !c.canEncode() {
			continue
		}
		e, d := newEncoder(c), newDecoder(c)
		pcm := Tone(440, -10, 20*time.Millisecond, e.rate())
		words := e.encode(nil, pcm)
		out := make([]int16, 0, opusMaxSamples)
		b.Run(c.String()+"/encode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				words = e.encode(words[:0], pcm)
			}
		})
		b.Run(c.String()+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				out = d.decode(out[:0], words)
			}
		})
	}
}

func BenchmarkResample(b *testing.B) {
	narrow, wide := Tone(440, -10, 20*time.Millisecond, 8000), Tone(440, -10, 20*time.Millisecond, 16000)
	for name, c := range map[string]struct {
		r  *resampler
		in []int16
	}{"8to16": {newResampler(8000, 16000), narrow}, "16to8": {newResampler(16000, 8000), wide}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			out := make([]int16, 0, 400)
			for b.Loop() {
				out = c.r.process(out[:0], c.in)
			}
		})
	}
}
