// Package dsp processes 16-bit PCM: resampling, tones, and synthesis of audio in place of lost packets.
package dsp

import (
	"math"
)

// A Resampler changes the rate of a stream of samples with a polyphase FIR filter: pass band to 0.41 of the lower
// rate, Kaiser β 8, about 80 dB of stop-band attenuation. It keeps history between calls and delays by 24 samples of
// the lower rate. It is not safe for concurrent use.
type Resampler struct {
	*filterBank
	history []float32 // the last taps-1 input samples
	next    int       // position of the next output after the history, in input samples times up
}

// filterBank holds the coefficients that all resamplers of a pair of rates share.
type filterBank struct {
	up, down, Taps int
	phases         []float32 // taps of each phase in reverse order, for a running product
}

const ResampleTaps = 48 // per phase, at the lower rate

// The two filter banks that calls use all the time.
var (
	bank8to16 = newFilterBank(8000, 16000)
	bank16to8 = newFilterBank(16000, 8000)
)

func newFilterBank(from, to int) *filterBank {
	g := gcd(from, to)
	b := &filterBank{up: to / g, down: from / g, Taps: ResampleTaps}
	if b.down > b.up {
		b.Taps = (ResampleTaps*b.down + b.up - 1) / b.up
	}
	n := b.Taps * b.up
	cutoff := 0.46 / float64(max(b.up, b.down)) // in cycles per sample of the highest rate
	b.phases = make([]float32, n)
	for i := range n {
		x, w := float64(i)-float64(n-1)/2, 2*float64(i)/float64(n-1)-1
		h := 2 * cutoff * sinc(2*cutoff*x) * bessel0(8*math.Sqrt(1-w*w)) / bessel0(8)
		phase, tap := i%b.up, i/b.up
		b.phases[phase*b.Taps+b.Taps-1-tap] = float32(h * float64(b.up))
	}
	return b
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// NewResampler returns nil if the rates are equal.
func NewResampler(from, to int) *Resampler {
	switch {
	case from == to:
		return nil
	case from == 8000 && to == 16000:
		return &Resampler{filterBank: bank8to16}
	case from == 16000 && to == 8000:
		return &Resampler{filterBank: bank16to8}
	}
	return &Resampler{filterBank: newFilterBank(from, to)}
}

// Process appends the resampled src to dst. A nil resampler copies.
func (r *Resampler) Process(dst, src []int16) []int16 {
	if r == nil {
		return append(dst, src...)
	}
	if r.history == nil {
		r.history = make([]float32, r.Taps-1, r.Taps-1+1024)
	}
	x := r.history
	for _, v := range src {
		x = append(x, float32(v))
	}
	for ; r.next/r.up < len(src); r.next += r.down {
		h, in := r.phases[r.next%r.up*r.Taps:][:r.Taps], x[r.next/r.up:][:r.Taps]
		dst = append(dst, clampFloat32(dotProduct(h, in)))
	}
	r.next -= len(src) * r.up
	r.history = x[:copy(x, x[len(src):])]
	return dst
}

// dotProduct uses four sums, which a processor can compute in parallel.
func dotProduct(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

func clampFloat32(v float32) int16 {
	switch {
	case v >= 32767:
		return 32767
	case v <= -32768:
		return -32768
	case v < 0:
		return int16(v - 0.5)
	}
	return int16(v + 0.5)
}

// A RateConverter changes the sample rate of mono audio piece by piece. It is not safe for concurrent use.
type RateConverter struct{ resampler *Resampler }

// NewRateConverter returns a converter between two rates, each 8000 to 48000 Hz.
func NewRateConverter(from, to int) *RateConverter { return &RateConverter{NewResampler(from, to)} }

// Convert appends the next piece at the other rate to dst.
func (r *RateConverter) Convert(dst, pcm []int16) []int16 {
	return r.resampler.Process(dst, pcm)
}
