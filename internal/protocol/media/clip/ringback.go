package clip

import (
	"math"
	"strings"
	"time"

	"soniq/internal/protocol/media/dsp"
)

// cadence is an interrupted tone: alternating on and off times in ms.
type cadence struct {
	hz       []float64 // added together; two close ones beat
	onAndOff []int
}

// ringbacks holds the ringback tones of callers (ITU-T E.180 supplement 2) by country.
var ringbacks = map[string]cadence{
	"US": {[]float64{440, 480}, []int{2000, 4000}},
	"CA": {[]float64{440, 480}, []int{2000, 4000}},
	"GB": {[]float64{400, 450}, []int{400, 200, 400, 2000}},
	"IE": {[]float64{400, 450}, []int{400, 200, 400, 2000}},
	"AU": {[]float64{400, 425}, []int{400, 200, 400, 2000}},
	"NZ": {[]float64{400, 450}, []int{400, 200, 400, 2000}},
	"IN": {[]float64{400}, []int{400, 200, 400, 2000}},
	"JP": {[]float64{400}, []int{1000, 2000}},
	"FR": {[]float64{440}, []int{1500, 3500}},
	"ES": {[]float64{425}, []int{1500, 3000}},
	"IT": {[]float64{425}, []int{1000, 4000}},
	"CH": {[]float64{425}, []int{1000, 4000}},
	"AT": {[]float64{420}, []int{1000, 5000}},
	"NL": {[]float64{425}, []int{1000, 4000}},
	"SE": {[]float64{425}, []int{1000, 5000}},
	"DE": {[]float64{425}, []int{1000, 4000}},
}

// Ringback returns one period of the ringback tone of a country, by its ISO 3166 code. Play it in a loop. Unknown
// countries get 425 Hz, one second on and four off.
func Ringback(country string) *Clip {
	c, ok := ringbacks[strings.ToUpper(country)]
	if !ok {
		c = ringbacks["DE"]
	}
	return c.clip()
}

// SpecialInformation returns one period of the special information tone (ITU-T E.180) for a call that cannot be
// completed: 950, 1400 and 1800 Hz, a third of a second each, and a second of silence.
func SpecialInformation() *Clip {
	var pcm []int16
	for _, hz := range []float64{950, 1400, 1800} {
		piece := make([]int16, 330*Rate/1000)
		cadence{hz: []float64{hz}}.fill(piece)
		pcm = append(pcm, piece...)
	}
	return inMemory(append(pcm, make([]int16, Rate)...))
}

// ringbackLevel is the level of each frequency in dBFS.
const ringbackLevel = -19

func (c cadence) clip() *Clip {
	var pcm []int16
	for i, ms := range c.onAndOff {
		piece := make([]int16, ms*Rate/1000)
		if i%2 == 0 {
			c.fill(piece)
		}
		pcm = append(pcm, piece...)
	}
	return inMemory(pcm)
}

// fill writes the tone to a piece, with edges of 5 ms against clicks.
func (c cadence) fill(piece []int16) {
	const edge = 5 * Rate / 1000
	a := 32767 * math.Pow(10, ringbackLevel/20.0)
	for i := range piece {
		v := 0.0
		for _, hz := range c.hz {
			v += a * math.Sin(2*math.Pi*hz*float64(i)/Rate)
		}
		piece[i] = dsp.Clamp(v * min(1, float64(i)/edge, float64(len(piece)-i)/edge))
	}
}

// Beep returns the tone before a recording: 1000 Hz for 300 ms.
func Beep() *Clip { return New(dsp.Tone(1000, -15, 300*time.Millisecond, Rate), Rate) }
