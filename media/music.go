package media

import (
	"math"
	"sync"
)

// Music is music to wait by, to be played in a loop: a calm piece of our own,
// synthesised when it is first asked for.
func Music() *Clip { return music() }

var music = sync.OnceValue(func() *Clip { return &Clip{pcm: compose()} })

// Four chords, a bar each, twice, as semitones from A3.
var musicChords = [8][4]int{
	{3, 7, 10, 14}, {0, 3, 7, 12}, {-4, 0, 3, 8}, {-2, 2, 5, 10},
	{3, 7, 10, 15}, {0, 3, 7, 14}, {-4, 0, 8, 12}, {-2, 5, 10, 14},
}

const musicBar = 2.4 // seconds

// compose plays the chords as broken by a soft electric piano over a pad. What
// rings on at the end rings into the beginning, so that the loop has no seam.
func compose() []int16 {
	n := int(musicBar * clipRate)
	mix := make([]float64, n*len(musicChords))
	for bar, chord := range musicChords {
		for i, note := range chord {
			pluck(mix, bar*n, musicBar, pitchOf(note-12), 0.05, 0.5)
			for _, beat := range [2]float64{float64(i) / 8, 0.5 + float64(3-i)/8} {
				pluck(mix, bar*n+int(beat*float64(n)), 1.6, pitchOf(note), 0.13, 0.004)
			}
		}
	}
	pcm := make([]int16, len(mix))
	for i, v := range mix {
		pcm[i] = clip(12000 * math.Tanh(1.2*v))
	}
	return pcm
}

func pitchOf(semitones int) float64 { return 220 * math.Pow(2, float64(semitones)/12) }

// pluck adds a note that rises in rise seconds and dies away.
func pluck(mix []float64, at int, seconds, hz, level, rise float64) {
	total := int(seconds * 1.5 * clipRate)
	for i := range total {
		t := float64(i) / clipRate
		envelope := level * (1 - math.Exp(-t/rise)) * math.Exp(-3*t/seconds)
		if left := float64(total-i) / clipRate; left < 0.05 {
			envelope *= left / 0.05
		}
		x := 2 * math.Pi * hz * t
		mix[(at+i)%len(mix)] += envelope * (math.Sin(x) + 0.3*math.Sin(2*x) + 0.1*math.Sin(3*x))
	}
}
