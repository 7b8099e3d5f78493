package dsp

import (
	"math"
	"time"
)

// Tone returns a sine of hz at a level in dBFS (0 is full scale), at rate samples per second.
func Tone(hz, dbfs float64, d time.Duration, rate int) []int16 {
	pcm := make([]int16, int(d.Seconds()*float64(rate)+0.5))
	a := 32767 * math.Pow(10, dbfs/20)
	for i := range pcm {
		pcm[i] = Clamp(a * math.Sin(2*math.Pi*hz*float64(i)/float64(rate)))
	}
	return pcm
}

// DominantFrequency returns the strongest frequency in pcm between 50 Hz and nearly half the rate, and its level in dBFS. It is exact to
// about 1 Hz for 100 ms or more. Silence is 0 Hz, -Inf.
func DominantFrequency(pcm []int16, rate int) (hz, dbfs float64) {
	n := len(pcm)
	if n < 8 || rate <= 0 || IsSilent(pcm) {
		return 0, math.Inf(-1)
	}
	hz, power := peakFrequency(pcm, rate, 50, 0.49*float64(rate), float64(rate)/float64(n))
	for step := float64(rate) / float64(n); step > 0.25; step /= 4 {
		hz, power = peakFrequency(pcm, rate, hz-step, hz+step, step/4)
	}
	// A Hann-windowed sine of amplitude A has |X| = A·n/4.
	return hz, 20 * math.Log10(4*math.Sqrt(power)/float64(n)/32767)
}

// IsSilent reports whether all samples are silence, as both laws of G.711 decode it.
func IsSilent(pcm []int16) bool {
	for _, v := range pcm {
		if v > 8 || v < -8 { // the idle codes of both laws decode to at most 8
			return false
		}
	}
	return true
}

// peakFrequency scans [from, to] in steps and returns the frequency with the most power.
func peakFrequency(pcm []int16, rate int, from, to, step float64) (hz, power float64) {
	for f := max(from, 1); f <= to; f += step {
		if p := goertzel(pcm, f/float64(rate)); p > power {
			hz, power = f, p
		}
	}
	return hz, power
}

// goertzel returns |X|² of Hann-windowed pcm at f cycles per sample.
func goertzel(pcm []int16, f float64) float64 {
	coeff := 2 * math.Cos(2*math.Pi*f)
	w := 2 * math.Pi / float64(len(pcm))
	// The window's cosine by recurrence: cos((i+1)w) = 2cos(w)cos(iw) - cos((i-1)w).
	c0, c1, k := 1.0, math.Cos(w), 2*math.Cos(w)
	var s1, s2 float64
	for _, v := range pcm {
		s := float64(v)*0.5*(1-c0) + coeff*s1 - s2
		s2, s1 = s1, s
		c0, c1 = c1, k*c1-c0
	}
	return s1*s1 + s2*s2 - coeff*s1*s2
}
