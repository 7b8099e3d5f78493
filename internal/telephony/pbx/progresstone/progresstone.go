// Package progresstone tells the tones of telephone networks from what people say: dial tone, ringing, busy, congestion and the special
// information tones (ITU-T E.180, E.180 Supplement 2).
package progresstone

import (
	"math"
	"time"
)

// tones are the frequencies of the tones in Hz. A tone of two frequencies has both.
var tones = [][]float64{
	{425}, {400}, {450}, // busy, congestion, ringing and dial tone of most countries
	{480, 620}, {440, 480}, {350, 440}, // busy, ringing and dial tone of North America
	{400, 450}, {350, 450}, // ringing and dial tone of the United Kingdom and others
	{950}, {1400}, {1800}, // special information tones
}

const (
	rate         = 8000
	blockLength  = 400 // samples: 50 ms, so that frequencies 20 Hz apart are told apart
	blockTime    = blockLength * time.Second / rate
	wholeShare   = 0.8  // of the energy of a block that a tone has
	partShare    = 0.15 // of the energy of a block that each of two frequencies has
	longest      = time.Second
	leastBlocks  = 3 // of a tone that was not heard before
	shareOfBurst = 0.6
)

// Detector measures how much of the loud audio of a call is no tone. It decides about each burst of sound, at most a second of it, as a
// whole, because the ends of a burst are not pure.
type Detector struct {
	block  []int16
	blocks int
	counts [16]int // blocks of the burst with each tone
	length time.Duration
	last   int // tone heard last, plus 1; 0: none
}

// Feed takes loud audio of 8 kHz. It returns the durations of sound and of tones that were decided about.
func (d *Detector) Feed(pcm []int16) (sound, tone time.Duration) {
	for len(pcm) > 0 {
		n := min(blockLength-len(d.block), len(pcm))
		d.block = append(d.block, pcm[:n]...)
		if pcm = pcm[n:]; len(d.block) < blockLength {
			break
		}
		if t := classify(d.block); t >= 0 {
			d.counts[t]++
		}
		d.block, d.blocks, d.length = d.block[:0], d.blocks+1, d.length+blockTime
		if d.length >= longest {
			s, t := d.decide()
			sound, tone = sound+s, tone+t
		}
	}
	return sound, tone
}

// Pause takes note that the audio became quiet or has ended. It returns the same as Feed.
func (d *Detector) Pause() (sound, tone time.Duration) {
	d.length += time.Duration(len(d.block)) * time.Second / rate
	d.block = d.block[:0]
	return d.decide()
}

// decide ends the burst.
func (d *Detector) decide() (sound, tone time.Duration) {
	best := 0
	for i, n := range d.counts {
		if n > d.counts[best] {
			best = i
		}
	}
	n, length := d.counts[best], d.length
	is := n > 0 && float64(n) >= shareOfBurst*float64(d.blocks) && (n >= leastBlocks || d.last == best+1)
	d.blocks, d.counts, d.length = 0, [16]int{}, 0
	if is {
		d.last = best + 1
		return 0, length
	}
	return length, 0
}

// classify returns the tone of a block as an index in tones; -1 if it is none.
func classify(block []int16) int {
	energy := 0.0
	for _, v := range block {
		energy += float64(v) * float64(v)
	}
	if energy == 0 {
		return -1
	}
	for i, frequencies := range tones {
		all, least := 0.0, 1.0
		for _, hz := range frequencies {
			share := power(block, hz) * 2 / (float64(len(block)) * energy)
			all, least = all+share, min(least, share)
		}
		if all >= wholeShare && (len(frequencies) == 1 || least >= partShare) {
			return i
		}
	}
	return -1
}

// power returns the power of a block at a frequency (Goertzel).
func power(block []int16, hz float64) float64 {
	k := 2 * math.Cos(2*math.Pi*hz/rate)
	var s1, s2 float64
	for _, v := range block {
		s1, s2 = float64(v)+k*s1-s2, s1
	}
	return s1*s1 + s2*s2 - k*s1*s2
}
