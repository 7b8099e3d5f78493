package transcript

import (
	"math"
	"math/rand/v2"
	"testing"
)

// harmonics returns a voice at 16 kHz with harmonics up to a frequency, falling by 12 dB per octave, with noise over
// the whole band.
func harmonics(upTo float64, noise float64) []int16 {
	r, pcm := rand.New(rand.NewPCG(1, 1)), make([]int16, 16000)
	for i := range pcm {
		v := 0.0
		for k := 1.0; 130*k < upTo; k++ {
			v += 6000 / (k * k) * math.Sin(2*math.Pi*130*k*float64(i)/16000)
		}
		pcm[i] = int16(v + noise*r.NormFloat64())
	}
	return pcm
}

func TestIsNarrowBand_TelephoneSpeechInWideRecording(t *testing.T) {
	t.Parallel()
	if !isNarrowBand(harmonics(3400, 0), 16000) || !isNarrowBand(harmonics(3400, 1), 16000) {
		t.Error("speech up to 3.4 kHz is narrow")
	}
	if isNarrowBand(harmonics(3400, 60), 16000) {
		t.Error("hiss up to 8 kHz, 40 dB below the voice, is not")
	}
	if !isNarrowBand(harmonics(3400, 60), 8000) {
		t.Error("8 kHz is narrow whatever it holds")
	}
}
