package transcript

import "math"

// isNarrowBand reports whether speech has nothing above 4 kHz: audio at 8 kHz, or telephone speech in a wide-band
// recording. Wide-band speech has more than a hundred-thousandth of its power there.
func isNarrowBand(pcm []int16, rate int) bool {
	if rate <= 8000 {
		return true
	}
	if rate != 16000 || len(pcm) < len(highPass) {
		return false
	}
	var all, high float64
	for i := 0; i+len(highPass) <= len(pcm); i++ {
		v := 0.0
		for k, c := range highPass {
			v += c * float64(pcm[i+k])
		}
		high += v * v
		all += float64(pcm[i]) * float64(pcm[i])
	}
	return high < all*1e-5
}

// highPass is a filter for frequencies above 4.8 kHz at 16 kHz: 63 taps, Blackman window, over 70 dB attenuation
// below 4.3 kHz.
var highPass = func() (h [63]float64) {
	const middle, cutoff = 31, 0.3
	for i := range h {
		x := float64(i - middle)
		low := 2 * cutoff
		if x != 0 {
			low = math.Sin(2*math.Pi*cutoff*x) / (math.Pi * x)
		}
		w := 0.42 - 0.5*math.Cos(2*math.Pi*float64(i)/62) + 0.08*math.Cos(4*math.Pi*float64(i)/62)
		h[i] = -low * w
	}
	h[middle]++
	return h
}()
