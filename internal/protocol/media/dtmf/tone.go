package dtmf

import "math"

import (
	"soniq/internal/protocol/media/dsp"
)

// The two frequency groups of DTMF (ITU-T Q.23), Hz.
var (
	lowTones  = [4]float64{697, 770, 852, 941}
	highTones = [4]float64{1209, 1336, 1477, 1633}
)

// keypad lists the keypad row by row.
const keypad = "123A456B789C*0#D"

// DualTone writes the tones of a digit at 8 kHz, starting at sample at. The low tone has about -10 dBFS, the high
// tone 1 dB more.
func DualTone(pcm []int16, code byte, at int) {
	key := 0
	for i := range keypad {
		if keypad[i] == Digits[code&15] {
			key = i
		}
	}
	low, high := 2*math.Pi*lowTones[key/4]/8000, 2*math.Pi*highTones[key%4]/8000
	for i := range pcm {
		t := float64(at + i)
		pcm[i] = dsp.Clamp(10400*math.Sin(low*t) + 11650*math.Sin(high*t))
	}
}
