package dsp

import (
	"math"
)

// Half-band polyphase FIR between 8 and 16 kHz: 63 taps, Kaiser β 8, pass band to 3.5 kHz. The group delay of 31
// samples at 16 kHz is removed.

const halfBandTaps = 32 // taps per phase

// firPhases holds the two phases of the prototype filter, with gain 2 for interpolation.
var firPhases = designHalfBand()

func designHalfBand() (p [2][halfBandTaps]float64) {
	const n, cutoff, beta = 2*halfBandTaps - 1, 0.235, 8.0 // cutoff in cycles per 16 kHz sample
	sum := 0.0
	var h [n]float64
	for i := range h {
		x := float64(i) - (n-1)/2.0
		w := 2*float64(i)/(n-1) - 1
		h[i] = 2 * cutoff * sinc(2*cutoff*x) * bessel0(beta*math.Sqrt(1-w*w)) / bessel0(beta)
		sum += h[i]
	}
	for i, v := range h {
		p[i%2][i/2] = v / sum
	}
	return p
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}

// bessel0 returns the modified Bessel function of order zero.
func bessel0(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > 1e-10*sum; k++ {
		term *= x * x / (4 * k * k)
		sum += term
	}
	return sum
}

// Upsample converts 8 kHz audio to 16 kHz. The result is twice as long and not delayed.
func Upsample(pcm8k []int16) []int16 {
	out := make([]int16, 2*len(pcm8k))
	for i := range out {
		// out[i] = Σ h[k]·x[(i+d-k)/2] over the k that hit a sample; d is the group delay.
		j := i + halfBandTaps - 1
		acc := 0.0
		for k, c := range firPhases[j&1] {
			acc += c * sampleAt(pcm8k, j/2-k)
		}
		out[i] = Clamp(2 * acc)
	}
	return out
}

// Downsample converts 16 kHz audio to 8 kHz. The result is half as long and not delayed.
func Downsample(pcm16k []int16) []int16 {
	out := make([]int16, len(pcm16k)/2)
	for i := range out {
		j := 2*i + halfBandTaps - 1
		acc := 0.0
		for k := range halfBandTaps {
			acc += firPhases[0][k]*sampleAt(pcm16k, j-2*k) + firPhases[1][k]*sampleAt(pcm16k, j-2*k-1)
		}
		out[i] = Clamp(acc)
	}
	return out
}

func sampleAt(x []int16, i int) float64 {
	if i < 0 || i >= len(x) {
		return 0
	}
	return float64(x[i])
}

// Clamp rounds v to the nearest sample.
func Clamp(v float64) int16 {
	return int16(math.Round(max(-32768, min(32767, v))))
}

// Saturate returns v restricted to the range of a sample.
func Saturate(v int32) int32 { return max(-32768, min(32767, v)) }
