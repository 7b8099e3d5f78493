package wav

import (
	"math"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"soniq/internal/protocol/media/dsp"
)

func TestWAV_RoundTrip(t *testing.T) {
	t.Parallel()
	left, right := dsp.Tone(440, -6, 251*time.Millisecond, 8000), dsp.Tone(1000, -6, 251*time.Millisecond, 8000)
	left, right = left[:2007], right[:2007] // odd length: the padding byte matters in mono
	for _, enc := range []Encoding{PCM16, ULaw, ALaw} {
		for _, in := range []Audio{{8000, [][]int16{left}}, {8000, [][]int16{left, right}}} {
			path := filepath.Join(t.TempDir(), "a.wav")
			if err := Write(path, in, enc); err != nil {
				t.Fatal(err)
			}
			got, err := Read(path)
			if err != nil || len(got.PCM) != len(in.PCM) || len(got.PCM[0]) != 2007 || got.Rate != 8000 {
				t.Fatalf("%v: %v, %d channels", enc, err, len(got.PCM))
			}
			if hz, _ := dsp.DominantFrequency(got.PCM[len(in.PCM)-1], 8000); math.Abs(hz-[]float64{0, 440, 1000}[len(in.PCM)]) > 2 {
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
	pcm := dsp.Tone(440, -6, time.Second, 8000)
	if err := Write(path, Audio{8000, [][]int16{pcm, pcm}}, ULaw); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("soxi", "-s", path).CombinedOutput()
	if err != nil || string(out) != "8000\n" {
		t.Errorf("soxi -s: %q %v", out, err)
	}
}

func FuzzReadWAV(f *testing.F) {
	h := Header(ULaw, 2, 8000, 16)
	f.Add(append(h[:], make([]byte, 16)...))
	f.Fuzz(func(t *testing.T, b []byte) { _, _ = Decode(b) })
}
