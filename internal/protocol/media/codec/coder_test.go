package codec

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/mediatest"
)

func TestCodec_EveryCodecCarriesTone(t *testing.T) {
	t.Parallel()
	for c := range Count {
		if !c.CanEncode() {
			t.Logf("%v cannot be spoken here", c)
			continue
		}
		e, d := NewEncoder(c), NewDecoder(c)
		in := dsp.Tone(700, -10, time.Second, e.Rate())
		out := mediatest.InFrames(in, e.Rate()/50, func(dst, src []int16) []int16 { return d.Decode(dst, e.Encode(nil, src)) })
		if hz, db := dsp.DominantFrequency(out[len(out)/2:], d.Rate()); !mediatest.NearHz(hz, 700) || math.Abs(db+10) > 1 ||
			len(out) != d.Rate() {
			t.Errorf("%v: %.0f Hz at %.1f dBFS, %d samples", c, hz, db, len(out))
		}
	}
}

func TestOpusDecoder_RandomPackets(t *testing.T) {
	t.Parallel()
	r, d := rand.New(rand.NewPCG(3, 4)), NewOpusDecoder()
	for n := range 3000 {
		b := make([]byte, n%90)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		if got := len(d.Decode(nil, b)); got > opusMaxSamples {
			t.Fatalf("%d samples", got)
		}
	}
}

func FuzzOpusDecoder(f *testing.F) {
	if e := newOpusEncoder(); e != nil {
		f.Add(e.Encode(nil, dsp.Tone(300, -6, 20*time.Millisecond, 16000)))
	}
	f.Add([]byte{0x0B, 0x83, 1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) { NewOpusDecoder().Decode(nil, b) })
}

func TestOpus_PacketDuration(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		b    []byte
		want int
	}{{nil, 0}, {[]byte{0x08}, 320}, {[]byte{0x18}, 960}, {[]byte{0x69}, 320 * 2}, {[]byte{0xF8}, 320}, {[]byte{0x83, 3}, 120},
		{[]byte{0x1B, 63}, 0}} {
		if got := opusSamples(c.b); got != c.want {
			t.Errorf("%x lasts %d samples, want %d", c.b, got, c.want)
		}
	}
}

func BenchmarkCoder(b *testing.B) {
	for c := range Count {
		if !c.CanEncode() {
			continue
		}
		e, d := NewEncoder(c), NewDecoder(c)
		pcm := dsp.Tone(440, -10, 20*time.Millisecond, e.Rate())
		words := e.Encode(nil, pcm)
		out := make([]int16, 0, opusMaxSamples)
		b.Run(c.String()+"/encode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				words = e.Encode(words[:0], pcm)
			}
		})
		b.Run(c.String()+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				out = d.Decode(out[:0], words)
			}
		})
	}
}
