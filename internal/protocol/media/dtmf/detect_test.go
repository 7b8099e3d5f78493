package dtmf

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/mediatest"
	"soniq/internal/protocol/media/wav"
)

// keyed returns digits as tones of on ms with pauses of off ms. level is relative to our own tones in dB. The high
// tones are twist dB above the low ones. detune shifts all frequencies by a share.
func keyed(digits string, on, off int, level, twist, detune float64) []int16 {
	var pcm []int16
	for _, d := range digits {
		key := strings.IndexRune(keypad, d)
		low, high := lowTones[key/4]*(1+detune), highTones[key%4]*(1+detune)
		a := 10000 * math.Pow(10, level/20)
		for i := range 8 * on {
			t := 2 * math.Pi * float64(i) / 8000
			pcm = append(pcm, dsp.Clamp(a*math.Sin(low*t)+a*math.Pow(10, twist/20)*math.Sin(high*t)))
		}
		pcm = append(pcm, make([]int16, 8*off)...)
	}
	return pcm
}

func detect(pcm []int16) (got string) {
	d := NewDetector()
	for ; len(pcm) > 0; pcm = pcm[min(160, len(pcm)):] {
		d.Detect(pcm[:min(160, len(pcm))], func(r rune) { got += string(r) })
	}
	return got
}

const allDigits = "0123456789*#ABCD"

func TestDTMFDetect_40msDigitsOnce(t *testing.T) {
	t.Parallel()
	for shift := range 102 { // at every alignment with the detector's blocks
		pcm := append(make([]int16, shift), keyed(allDigits+"55500", 40, 40, 0, 0, 0)...)
		if got := detect(pcm); got != allDigits+"55500" {
			t.Fatalf("shifted by %d: %q", shift, got)
		}
	}
}

func TestDTMFDetect_WithinQ24Limits(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for name, c := range map[string]struct{ level, twist, detune, noise float64 }{
		"quiet": {-26, 0, 0, 0}, "loud": {3, 0, 0, 0}, "high tones stronger": {-6, 6, 0, 0}, "low tones stronger": {-3, -3, 0, 0},
		"1.5 % high": {0, 0, 0.015, 0}, "1.5 % low": {0, 0, -0.015, 0}, "noise of -15 dB": {0, 0, 0, 2500},
	} {
		pcm := keyed(allDigits, 60, 60, c.level, c.twist, c.detune)
		for i := range pcm {
			pcm[i] = dsp.Clamp(float64(pcm[i]) + c.noise*r.NormFloat64())
		}
		if got := detect(codec.DecodeULaw(nil, codec.EncodeULaw(nil, pcm))); got != allDigits {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestDTMFDetect_OutsideLimitsIgnored(t *testing.T) {
	t.Parallel()
	long := func(f func(i int) float64) []int16 {
		pcm := make([]int16, 80000)
		for i := range pcm {
			pcm[i] = dsp.Clamp(f(i))
		}
		return pcm
	}
	sine := func(hz float64, i int) float64 { return math.Sin(2 * math.Pi * hz * float64(i) / 8000) }
	r := rand.New(rand.NewPCG(8, 9))
	for name, pcm := range map[string][]int16{
		"20 ms":          keyed(allDigits, 20, 60, 0, 0, 0),
		"4 % off":        keyed(allDigits, 60, 60, 0, 0, 0.04),
		"twist of 12 dB": keyed(allDigits, 60, 60, -12, 12, 0),
		"one tone":       long(func(i int) float64 { return 15000 * sine(697, i) }),
		"three tones":    long(func(i int) float64 { return 7000 * (sine(697, i) + sine(1209, i) + sine(1633, i)) }),
		"dial tone":      long(func(i int) float64 { return 9000 * (sine(350, i) + sine(440, i)) }),
		"noise":          long(func(int) float64 { return 6000 * r.NormFloat64() }),
		"gliding vowel": long(func(i int) float64 {
			v, f0 := 0.0, 110+40*math.Sin(float64(i)/3000)
			for k := 1.0; k < 25; k++ {
				v += sine(f0*k, i) * math.Exp(-math.Pow((f0*k-700)/150, 2)) * 9000
				v += sine(f0*k, i) * math.Exp(-math.Pow((f0*k-1250)/150, 2)) * 7000
			}
			return v
		}),
		"babble": dsp.Downsample(mediatest.Babble()),
	} {
		if got := detect(pcm); got != "" {
			t.Errorf("%s was taken for %q", name, got)
		}
	}
}

// Synthesised speech is never detected as a digit.
func TestDTMFDetect_SpeechIsNoDigit(t *testing.T) {
	t.Parallel()
	flite, err := exec.LookPath("flite")
	if err != nil {
		t.Skip("flite is not installed")
	}
	text := strings.Repeat("Please dial one, two, three or nine for our office in Berlin. The early bird catches the worm, "+
		"whereas the second mouse gets the cheese. A quick brown fox jumps over seven lazy dogs; we were away a year ago. ", 6)
	for _, voice := range []string{"kal", "slt", "rms", "awb"} {
		path := filepath.Join(t.TempDir(), voice+".wav")
		var stderr bytes.Buffer
		cmd := exec.Command(flite, "-voice", voice, "-t", text, "-o", path)
		cmd.Stderr = &stderr
		if err := cmd.Run(); err != nil {
			t.Fatal(err, stderr.String())
		}
		w, err := wav.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		pcm := dsp.NewResampler(w.Rate, 8000).Process(nil, w.PCM[0])
		if got := detect(pcm); got != "" {
			t.Errorf("%d s of voice %s were taken for %q", len(pcm)/8000, voice, got)
		}
	}
}

func BenchmarkDetectDTMF(b *testing.B) {
	d, pcm := NewDetector(), keyed("5", 20, 0, 0, 0, 0)
	b.ReportAllocs()
	for b.Loop() {
		d.Detect(pcm, func(rune) {})
	}
}
