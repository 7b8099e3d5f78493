package media

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

// babble returns deterministic audio with the level changes of speech: three gliding voices, a hiss, pauses, and some
// clipping. 8000 samples at 16 kHz.
func babble() []int16 {
	pcm, noise := make([]int16, 8000), uint32(1)
	var phase [3]uint32
	for i := range pcm {
		v := int32(0)
		for k := range phase {
			phase[k] += uint32(60000+40000*k+i*(k+2)) * 64 // a triangle
			v += (int32(phase[k]>>16)&0x7FFF - 0x4000) * int32(1+k) / 2
		}
		noise = noise*1664525 + 1013904223
		v += int32(noise>>18) - 8192
		if i/1000%4 == 3 {
			v = int32(noise >> 28)
		}
		pcm[i] = int16(sat16(v))
	}
	return pcm
}

func pcmBytes(pcm []int16) []byte {
	var b []byte
	for _, v := range pcm {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return b
}

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
	if got := newG722Encoder().encode(nil, babble()); !bytes.Equal(got, want) {
		t.Error("the code words differ")
	}
	sum := sha256.Sum256(pcmBytes(newG722Decoder().decode(nil, want)))
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
		in := Tone(hz, -10, 500*time.Millisecond, 16000)
		out := newG722Decoder().decode(nil, newG722Encoder().encode(nil, in))
		if got := noiseRatio(in, out, 40); got < least {
			t.Errorf("%.0f Hz comes back with %.1f dB, want %.0f", hz, got, least)
		}
	}
}

// A recording decoded as a whole equals a stream decoded packet by packet.
func TestDecodeG722_WholeRecording(t *testing.T) {
	t.Parallel()
	coded := newG722Encoder().encode(nil, babble())
	d, want := newG722Decoder(), []int16(nil)
	for from := 0; from < len(coded); from += 160 {
		want = d.decode(want, coded[from:min(from+160, len(coded))])
	}
	if got := DecodeG722(coded); len(got) != 2*len(coded) || !bytes.Equal(pcmBytes(got), pcmBytes(want)) {
		t.Errorf("%d samples of %d bytes, or others than a stream has", len(got), len(coded))
	}
	if got := DecodeG722(nil); len(got) != 0 {
		t.Errorf("of nothing %d samples", len(got))
	}
}

func TestG722_Silence(t *testing.T) {
	t.Parallel()
	for _, v := range newG722Decoder().decode(nil, newG722Encoder().encode(nil, make([]int16, 3200))) {
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
		if n := len(d.decode(nil, b)); n != 320 {
			t.Fatalf("%d samples of 160 words", n)
		}
		if n := len(e.encode(nil, pcm)); n != 160 {
			t.Fatalf("%d words of 321 samples", n)
		}
	}
}

func BenchmarkG722(b *testing.B) {
	pcm, words := Tone(440, -10, 20*time.Millisecond, 16000), make([]byte, 0, 160)
	b.Run("encode", func(b *testing.B) {
		e := newG722Encoder()
		b.ReportAllocs()
		for b.Loop() {
			words = e.encode(words[:0], pcm)
		}
	})
	b.Run("decode", func(b *testing.B) {
		d := newG722Decoder()
		b.ReportAllocs()
		for b.Loop() {
			pcm = d.decode(pcm[:0], words)
		}
	})
}
