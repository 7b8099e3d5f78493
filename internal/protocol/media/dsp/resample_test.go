package dsp

import (
	"fmt"
	"math"
	"testing"
	"time"

	"soniq/internal/protocol/media/mediatest"
)

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

func TestResampler_KeepsTonesWithoutAliasing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to int
		hz, db   float64 // of the input; below -60 dB the tone must be filtered out
	}{{8000, 16000, 1000, -10}, {16000, 8000, 3000, -10}, {16000, 8000, 5000, -99}, {48000, 16000, 6400, -10}, {48000, 16000, 9500, -99},
		{44100, 16000, 440, -10}, {44100, 16000, 12000, -99}, {11025, 16000, 2000, -10}, {16000, 48000, 6000, -10}} {
		t.Run(fmt.Sprintf("%d Hz from %d to %d", int(c.hz), c.from, c.to), func(t *testing.T) {
			t.Parallel()
			r := NewResampler(c.from, c.to)
			in := Tone(c.hz, -10, 500*time.Millisecond, c.from)
			out := mediatest.InFrames(in, c.from/100, r.Process)
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

func BenchmarkResample(b *testing.B) {
	narrow, wide := Tone(440, -10, 20*time.Millisecond, 8000), Tone(440, -10, 20*time.Millisecond, 16000)
	for name, c := range map[string]struct {
		r  *Resampler
		in []int16
	}{"8to16": {NewResampler(8000, 16000), narrow}, "16to8": {NewResampler(16000, 8000), wide}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			out := make([]int16, 0, 400)
			for b.Loop() {
				out = c.r.Process(out[:0], c.in)
			}
		})
	}
}
