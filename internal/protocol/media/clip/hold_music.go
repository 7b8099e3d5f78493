package clip

import (
	"math"
	"sync"

	"soniq/internal/protocol/media/dsp"
)

// HoldMusic returns music on hold, to be played in a loop. It is a calm piece of our own, synthesised on the first
// call.
func HoldMusic() *Clip { return holdMusic() }

var holdMusic = sync.OnceValue(func() *Clip { return inMemory(synthesizeMusic()) })

// Four chords, one bar each, twice with variations, as semitones above A3.
var musicChords = [8][4]int{
	{3, 7, 10, 14}, {0, 3, 7, 12}, {-4, 0, 3, 8}, {-2, 2, 5, 10},
	{3, 7, 10, 15}, {0, 3, 7, 14}, {-4, 0, 8, 12}, {-2, 5, 10, 14},
}

const musicBar = 2.4 // seconds

// synthesizeMusic plays the chords broken, with a soft electric piano over a pad. Notes that still sound at the end
// continue at the beginning, so that the loop has no seam.
func synthesizeMusic() []int16 {
	n := int(musicBar * Rate)
	mix := make([]float64, n*len(musicChords))
	for bar, chord := range musicChords {
		for i, note := range chord {
			addNote(mix, bar*n, musicBar, noteFrequency(note-12), 0.05, 0.5)
			for _, beat := range [2]float64{float64(i) / 8, 0.5 + float64(3-i)/8} {
				addNote(mix, bar*n+int(beat*float64(n)), 1.6, noteFrequency(note), 0.13, 0.004)
			}
		}
	}
	pcm := make([]int16, len(mix))
	for i, v := range mix {
		pcm[i] = dsp.Clamp(12000 * math.Tanh(1.2*v))
	}
	return pcm
}

func noteFrequency(semitones int) float64 { return 220 * math.Pow(2, float64(semitones)/12) }

// addNote adds a note with an attack of rise seconds and an exponential decay: A·(1-e^(-t/rise))·e^(-3t/seconds) of
// sin x + 0.3 sin 2x + 0.1 sin 3x. Each sample is computed from the previous one, because the first caller on hold
// waits until all samples are done.
func addNote(mix []float64, at int, seconds, hz, level, rise float64) {
	total, fade := int(seconds*1.5*Rate), int(0.05*Rate)
	step, cosStep := math.Sincos(2 * math.Pi * hz / Rate)
	fall, missing := level, 1.0
	fallStep, missingStep := math.Exp(-3/seconds/Rate), math.Exp(-1/rise/Rate)
	sin, cos := 0.0, 1.0
	at %= len(mix)
	for i := range total {
		v := fall * (1 - missing) * sin * (1 + 0.6*cos + 0.1*(3-4*sin*sin))
		if left := total - i; left < fade {
			v *= float64(left) / float64(fade)
		}
		mix[at] += v
		if at++; at == len(mix) {
			at = 0
		}
		fall, missing = fall*fallStep, missing*missingStep
		sin, cos = sin*cosStep+cos*step, cos*cosStep-sin*step
	}
}
