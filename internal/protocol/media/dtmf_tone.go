package media

import "math"

// The two frequency groups of DTMF (ITU-T Q.23), Hz.
var (
	dtmfLow  = [4]float64{697, 770, 852, 941}
	dtmfHigh = [4]float64{1209, 1336, 1477, 1633}
)

// dtmfKeys lists the keypad row by row.
const dtmfKeys = "123A456B789C*0#D"

// dualTone writes the tones of a digit at 8 kHz, starting at sample at. The low tone has about -10 dBFS, the high
// tone 1 dB more.
func dualTone(pcm []int16, code byte, at int) {
	key := 0
	for i := range dtmfKeys {
		if dtmfKeys[i] == dtmfDigits[code&15] {
			key = i
		}
	}
	low, high := 2*math.Pi*dtmfLow[key/4]/8000, 2*math.Pi*dtmfHigh[key%4]/8000
	for i := range pcm {
		t := float64(at + i)
		pcm[i] = clampSample(10400*math.Sin(low*t) + 11650*math.Sin(high*t))
	}
}
