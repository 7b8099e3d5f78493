package routing

import (
	"time"

	"soniq/internal/protocol/media"
)

// specialInformationTone returns the special information tone (ITU-T E.180), twice. It means that the call cannot be
// connected.
func specialInformationTone() *media.Clip {
	var pcm []int16
	for range 2 {
		for _, hz := range []float64{950, 1400, 1800} {
			pcm = append(pcm, media.Tone(hz, -14, 330*time.Millisecond, 8000)...)
		}
		pcm = append(pcm, make([]int16, 8000)...)
	}
	return media.NewClip(pcm, 8000)
}

// Beep returns a tone that prompts for a key. It is played if there is no text to speech.
func Beep() *media.Clip {
	return media.NewClip(media.Tone(1000, -14, 250*time.Millisecond, 8000), 8000)
}
