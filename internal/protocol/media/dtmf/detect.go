package dtmf

import "math"

// Detector detects DTMF tones in 8 kHz audio by the rules of ITU-T Q.24.
//   - Both tones are above -38 dBFS. The high tone is at most 8 dB above the low one, the low one at most 4 dB above the high one.
//   - Each tone is alone in its group, and both together have nearly all of the energy.
//   - They last at least 25 to 40 ms, followed by a pause as long.
//
// Speech seldom meets all of these conditions.
type Detector struct {
	s1, s2 [8]float32 // Goertzel states: low group, high group
	energy float32
	n      int

	last    byte // of the last block; noDigit if none
	current byte // digit already reported and still on
	misses  int  // consecutive blocks without it
}

const (
	dtmfBlock = 102 // samples: 12.75 ms, the length that separates the frequencies best
	noDigit   = 0xFF

	dtmfMinPower     = 400 * 400 * dtmfBlock * dtmfBlock / 4 // |X|² of each tone
	dtmfPeakRatio    = 6.3                                   // 8 dB over the others of its group
	dtmfTwist        = 6.3                                   // high over low
	dtmfReverseTwist = 2.5                                   // low over high
	dtmfEnergyShare  = 0.79                                  // of all energy
)

var dtmfCoefficients = func() (c [8]float32) {
	for i := range 4 {
		c[i] = float32(2 * math.Cos(2*math.Pi*lowTones[i]/8000))
		c[i+4] = float32(2 * math.Cos(2*math.Pi*highTones[i]/8000))
	}
	return c
}()

// NewDetector returns a detector for one stream of 8 kHz.
func NewDetector() *Detector {
	return &Detector{last: noDigit, current: noDigit}
}

// Detect calls f once per digit, as soon as the digit has lasted long enough.
func (d *Detector) Detect(pcm []int16, f func(rune)) {
	for _, v := range pcm {
		x := float32(v)
		for i, c := range dtmfCoefficients {
			s := x + c*d.s1[i] - d.s2[i]
			d.s2[i], d.s1[i] = d.s1[i], s
		}
		d.energy += x * x
		if d.n++; d.n == dtmfBlock {
			d.endBlock(f)
		}
	}
}

// endBlock evaluates a complete block and starts the next one.
func (d *Detector) endBlock(f func(rune)) {
	hit := d.blockDigit()
	d.s1, d.s2, d.energy, d.n = [8]float32{}, [8]float32{}, 0, 0
	if hit == d.current && hit != noDigit {
		d.misses = 0
	} else if d.misses++; d.misses >= 2 {
		d.current = noDigit
	}
	if hit != noDigit && hit == d.last && hit != d.current {
		d.current, d.misses = hit, 0
		f(rune(hit))
	}
	d.last = hit
}

// blockDigit returns the digit of a complete block, or noDigit.
func (d *Detector) blockDigit() byte {
	var p [8]float32
	for i, c := range dtmfCoefficients {
		p[i] = d.s1[i]*d.s1[i] + d.s2[i]*d.s2[i] - c*d.s1[i]*d.s2[i]
	}
	row, low, ok := strongestTone(p[:4])
	column, high, only := strongestTone(p[4:])
	switch {
	case !ok || !only || low < dtmfMinPower || high < dtmfMinPower:
	case high > low*dtmfTwist || low > high*dtmfReverseTwist:
	case low+high < dtmfEnergyShare*d.energy*dtmfBlock/2:
	default:
		return keypad[4*row+column]
	}
	return noDigit
}

// strongestTone returns the strongest of four tones and whether it is far above the others.
func strongestTone(p []float32) (at int, power float32, alone bool) {
	for i, v := range p {
		if v > power {
			at, power = i, v
		}
	}
	for i, v := range p {
		if i != at && v*dtmfPeakRatio > power {
			return at, power, false
		}
	}
	return at, power, true
}
