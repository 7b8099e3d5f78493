package speech

import "math"

// upsampleTaps is the one-sided length of the low-pass filter between 8 and 16 kHz.
const upsampleTaps = 31

// upsample doubles the rate of 8 kHz audio with a windowed-sinc low-pass filter. The even output samples equal the
// input, because the filter is zero there; only the odd ones are computed.
func upsample(pcm []int16, half []float32) []int16 {
	out := make([]int16, 2*len(pcm))
	for i, v := range pcm {
		out[2*i] = v
		var sum float32
		for k, c := range half {
			if j := i - k; j >= 0 {
				sum += c * float32(pcm[j])
			}
			if j := i + 1 + k; j < len(pcm) {
				sum += c * float32(pcm[j])
			}
		}
		out[2*i+1] = int16(min(max(sum, -32768), 32767))
	}
	return out
}

// upsampleFilter returns one side of the filter: the weights of the samples 1/2, 3/2, 5/2 ... input samples away,
// with a Blackman window.
func upsampleFilter() []float32 {
	half := make([]float32, (upsampleTaps+1)/2)
	for k := range half {
		t := float64(2*k + 1)
		window := 0.42 + 0.5*math.Cos(math.Pi*t/(upsampleTaps+1)) + 0.08*math.Cos(2*math.Pi*t/(upsampleTaps+1))
		half[k] = float32(math.Sin(math.Pi*t/2) / (math.Pi * t / 2) * window)
	}
	return half
}
