package media

import "time"

// clipRate is the rate clips are kept at.
const clipRate = 16000

// A Clip is decoded sound that can be played to many legs at once. It never changes.
type Clip struct {
	pcm []int16
}

// NewClip makes a clip of mono samples at rate, which must be between 8000 and 48000 Hz.
func NewClip(pcm []int16, rate int) *Clip {
	r := newResampler(rate, clipRate)
	return &Clip{pcm: r.process(make([]int16, 0, len(pcm)*clipRate/rate+1), pcm)}
}

// Duration is how long the clip lasts.
func (c *Clip) Duration() time.Duration {
	return time.Duration(len(c.pcm)) * time.Second / clipRate
}
