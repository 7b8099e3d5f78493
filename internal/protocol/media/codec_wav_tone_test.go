package media

import (
	"math"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestG711_CodeWordsRoundTrip(t *testing.T) {
	t.Parallel()
	for i := range 256 {
		u := byte(i)
		if got := ulawOf[uint16(linearOfULaw[u])]; got != u && !(u == 0x7F && got == 0xFF) { // two zeros
			t.Errorf("µ-law %#x → %d → %#x", u, linearOfULaw[u], got)
		}
		if got := alawOf[uint16(linearOfALaw[u])]; got != u {
			t.Errorf("A-law %#x → %d → %#x", u, linearOfALaw[u], got)
		}
	}
}

func TestG711_KnownValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		codec Codec
		code  byte
		pcm   int16
	}{
		{PCMU, 0x00, -32124}, {PCMU, 0x80, 32124}, {PCMU, 0xFF, 0}, {PCMU, 0x9F, 8316}, // G.711 tables 2a, 2b
		{PCMA, 0x2A, -32256}, {PCMA, 0xAA, 32256}, {PCMA, 0xD5, 8}, {PCMA, 0x55, -8},
	} {
		if got := c.codec.Decode(nil, []byte{c.code})[0]; got != c.pcm {
			t.Errorf("%v %#x = %d, want %d", c.codec, c.code, got, c.pcm)
		}
	}
}

func TestG711_ErrorWithinHalfStep(t *testing.T) {
	t.Parallel()
	for v := -32635; v <= 32635; v++ {
		for _, c := range []Codec{PCMU, PCMA} {
			got := c.Decode(nil, c.Encode(nil, []int16{int16(v)}))[0]
			if d := math.Abs(float64(int(got) - v)); d > math.Max(16, (math.Abs(float64(v))+132)/32) {
				t.Fatalf("%v %d came back as %d", c, v, got)
			}
		}
	}
}

func TestResampleHalfBand_KeepsTones(t *testing.T) {
	t.Parallel()
	for _, hz := range []float64{300, 440, 1000, 3000} {
		in := Tone(hz, -10, 500*time.Millisecond, 8000)
		up := Upsample(in)
		if got, db := DominantFrequency(up[800:7200], 16000); math.Abs(got-hz) > 1 || math.Abs(db+10) > 0.5 {
			t.Errorf("up: %.0f Hz became %.1f Hz at %.1f dBFS", hz, got, db)
		}
		down := Downsample(up)
		worst := 0.0
		for i := 100; i < len(in)-100; i++ {
			worst = math.Max(worst, math.Abs(float64(in[i])-float64(down[i])))
		}
		if worst > 150 { // -47 dB of full scale
			t.Errorf("%.0f Hz differs by %.0f after up and down", hz, worst)
		}
	}
}

func TestDownsample_NoAliasing(t *testing.T) {
	t.Parallel()
	out := Downsample(Tone(5000, -3, 500*time.Millisecond, 16000))
	if _, db := DominantFrequency(out[200:3800], 8000); db > -60 {
		t.Errorf("5 kHz leaks at %.1f dBFS", db)
	}
}

func TestDominantFrequency_Silence(t *testing.T) {
	t.Parallel()
	if hz, db := DominantFrequency(DecodeALaw(nil, make([]byte, 0)), 8000); hz != 0 || !math.IsInf(db, -1) {
		t.Errorf("empty: %v %v", hz, db)
	}
	if hz, _ := DominantFrequency(make([]int16, 800), 8000); hz != 0 {
		t.Errorf("zeros: %v Hz", hz)
	}
}

func TestWAV_RoundTrip(t *testing.T) {
	t.Parallel()
	left, right := Tone(440, -6, 251*time.Millisecond, 8000), Tone(1000, -6, 251*time.Millisecond, 8000)
	left, right = left[:2007], right[:2007] // odd length: the padding byte matters in mono
	for _, enc := range []Encoding{PCM16, ULaw, ALaw} {
		for _, in := range []WAV{{8000, [][]int16{left}}, {8000, [][]int16{left, right}}} {
			path := filepath.Join(t.TempDir(), "a.wav")
			if err := WriteWAV(path, in, enc); err != nil {
				t.Fatal(err)
			}
			got, err := ReadWAV(path)
			if err != nil || len(got.PCM) != len(in.PCM) || len(got.PCM[0]) != 2007 || got.Rate != 8000 {
				t.Fatalf("%v: %v, %d channels", enc, err, len(got.PCM))
			}
			if hz, _ := DominantFrequency(got.PCM[len(in.PCM)-1], 8000); math.Abs(hz-[]float64{0, 440, 1000}[len(in.PCM)]) > 2 {
				t.Errorf("%v: last channel is %.0f Hz", enc, hz)
			}
		}
	}
}

// TestWAV_ReadableBySox checks the WAV header with an independent reader.
func TestWAV_ReadableBySox(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("soxi"); err != nil {
		t.Skip("sox is not installed")
	}
	path := filepath.Join(t.TempDir(), "a.wav")
	pcm := Tone(440, -6, time.Second, 8000)
	if err := WriteWAV(path, WAV{8000, [][]int16{pcm, pcm}}, ULaw); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("soxi", "-s", path).CombinedOutput()
	if err != nil || string(out) != "8000\n" {
		t.Errorf("soxi -s: %q %v", out, err)
	}
}

func FuzzReadWAV(f *testing.F) {
	h := wavHeader(ULaw, 2, 8000, 16)
	f.Add(append(h[:], make([]byte, 16)...))
	f.Fuzz(func(t *testing.T, b []byte) { _, _ = decodeWAV(b) })
}
