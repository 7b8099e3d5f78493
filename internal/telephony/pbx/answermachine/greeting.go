// Package answermachine detects answering machines by the first seconds of audio.
package answermachine

import (
	"time"
)

// Thresholds of answering machine detection (AMD). People answer with a word or two and wait. Machines talk on, or
// beep. The first seconds decide.
const (
	machineWindow = 4 * time.Second         // duration of the analysis
	machineSpeech = 2200 * time.Millisecond // speech without a pause that indicates a machine
	personPause   = 700 * time.Millisecond  // pause after speech that indicates a waiting person
)

// Greeting analyses the audio after the answer.
type Greeting struct {
	heard   time.Duration
	speech  time.Duration // speech without a long pause
	silence time.Duration
}

// Verdict is the result of the analysis so far.
type Verdict int

const (
	Undecided Verdict = iota
	person
	Machine
)

// Feed analyses 8 kHz PCM audio.
func (g *Greeting) Feed(pcm []int16) Verdict {
	d := time.Duration(len(pcm)) * time.Second / 8000
	g.heard += d
	if IsLoud(pcm) {
		g.speech += d + g.silence
		g.silence = 0
	} else if g.speech > 0 {
		g.silence += d
	}
	switch {
	case g.speech >= machineSpeech:
		return Machine
	case g.speech > 0 && g.silence >= personPause, g.heard >= machineWindow:
		return person
	}
	return Undecided
}

// IsLoud reports whether the level of the audio is above background noise.
func IsLoud(pcm []int16) bool {
	var sum int64
	for _, v := range pcm {
		sum += int64(v) * int64(v)
	}
	return len(pcm) > 0 && sum/int64(len(pcm)) > 250*250
}
