package routing

import (
	"time"

	"soniq/internal/protocol/media/clip"
	"soniq/internal/protocol/media/dsp"
)

// specialInformationTone returns the special information tone (ITU-T E.180), twice. It means that the call cannot be
// connected.
func specialInformationTone() *clip.Clip {
	var pcm []int16
	for range 2 {
		for _, hz := range []float64{950, 1400, 1800} {
			pcm = append(pcm, dsp.Tone(hz, -14, 330*time.Millisecond, 8000)...)
		}
		pcm = append(pcm, make([]int16, 8000)...)
	}
	return clip.New(pcm, 8000)
}

// Beep returns a tone that prompts for a key. It is played if there is no text to speech.
func Beep() *clip.Clip {
	return clip.New(dsp.Tone(1000, -14, 250*time.Millisecond, 8000), 8000)
}
