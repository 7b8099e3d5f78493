package codec

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/mediatest"
)

// testdata/babble.g722 is babble() encoded by ffmpeg 5.1. The checksum is that of the file decoded by ffmpeg:
//
//	ffmpeg -f s16le -ar 16000 -ac 1 -i babble.pcm -c:a g722 -f g722 babble.g722
//	ffmpeg -f g722 -i babble.g722 -f s16le - | sha256sum
func TestG722_BitExactWithFFmpeg(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("testdata/babble.g722")
	if err != nil {
		t.Fatal(err)
	}
	if got := newG722Encoder().Encode(nil, mediatest.Babble()); !bytes.Equal(got, want) {
		t.Error("the code words differ")
	}
	sum := sha256.Sum256(mediatest.PCMBytes(newG722Decoder().Decode(nil, want)))
	if got := hex.EncodeToString(sum[:]); got != "a34818a41d69b3fd5bd4e92552c9e274e5a7e77b2504b60487a34abea77b9d04" {
		t.Errorf("decoded to %s", got)
	}
}

// noiseRatio returns the signal-to-noise ratio of out against in, in dB, at the best delay of up to most samples.
func noiseRatio(in, out []int16, most int) float64 {
	best := math.Inf(-1)
	for d := range most {
		var signal, noise float64
		for i := most; i+d < min(len(in), len(out)-d); i++ {
			e := float64(in[i]) - float64(out[i+d])
			signal, noise = signal+float64(in[i])*float64(in[i]), noise+e*e
		}
		best = max(best, 10*math.Log10(signal/max(noise, 1)))
	}
	return best
}

func TestG722_KeepsTones(t *testing.T) {
	t.Parallel()
	for hz, least := range map[float64]float64{300: 30, 1000: 28, 3000: 25, 5500: 10, 6800: 8} {
		in := dsp.Tone(hz, -10, 500*time.Millisecond, 16000)
		out := newG722Decoder().Decode(nil, newG722Encoder().Encode(nil, in))
		if got := noiseRatio(in, out, 40); got < least {
			t.Errorf("%.0f Hz comes back with %.1f dB, want %.0f", hz, got, least)
		}
	}
}

// A recording decoded as a whole equals a stream decoded packet by packet.
func TestDecodeG722_WholeRecording(t *testing.T) {
	t.Parallel()
	coded := newG722Encoder().Encode(nil, mediatest.Babble())
	d, want := newG722Decoder(), []int16(nil)
	for from := 0; from < len(coded); from += 160 {
		want = d.Decode(want, coded[from:min(from+160, len(coded))])
	}
	if got := DecodeG722(coded); len(got) != 2*len(coded) || !bytes.Equal(mediatest.PCMBytes(got), mediatest.PCMBytes(want)) {
		t.Errorf("%d samples of %d bytes, or others than a stream has", len(got), len(coded))
	}
	if got := DecodeG722(nil); len(got) != 0 {
		t.Errorf("of nothing %d samples", len(got))
	}
}

func TestG722_Silence(t *testing.T) {
	t.Parallel()
	for _, v := range newG722Decoder().Decode(nil, newG722Encoder().Encode(nil, make([]int16, 3200))) {
		if v > 20 || v < -20 {
			t.Fatalf("silence became %d", v)
		}
	}
}

func TestG722_RandomInput(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	d, e := newG722Decoder(), newG722Encoder()
	b, pcm := make([]byte, 160), make([]int16, 321)
	for range 500 {
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		for i := range pcm {
			pcm[i] = int16(r.Uint32())
		}
		if n := len(d.Decode(nil, b)); n != 320 {
			t.Fatalf("%d samples of 160 words", n)
		}
		if n := len(e.Encode(nil, pcm)); n != 160 {
			t.Fatalf("%d words of 321 samples", n)
		}
	}
}

func BenchmarkG722(b *testing.B) {
	pcm, words := dsp.Tone(440, -10, 20*time.Millisecond, 16000), make([]byte, 0, 160)
	b.Run("encode", func(b *testing.B) {
		e := newG722Encoder()
		b.ReportAllocs()
		for b.Loop() {
			words = e.Encode(words[:0], pcm)
		}
	})
	b.Run("decode", func(b *testing.B) {
		d := newG722Decoder()
		b.ReportAllocs()
		for b.Loop() {
			pcm = d.Decode(pcm[:0], words)
		}
	})
}
