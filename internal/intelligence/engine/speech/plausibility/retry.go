package plausibility

import (
	"slices"

	"soniq/internal/intelligence/transcript"
)

// minRetryMS is the shortest clip that is recognised again: shorter ones have no word.
const minRetryMS = 100

// change is a way to make a clip slightly different.
type change struct {
	alter func(transcript.Clip) []int16
	cutMS int // what is missing at the start
}

// leadMS is cut off the start of a clip, about half of the silence before its first word.
const leadMS = 100

// changes are tried in this order. Tones and noise still give no words.
var changes = []change{
	{alter: func(c transcript.Clip) []int16 { return withPeak(c.PCM, 8192) }},
	{alter: func(c transcript.Clip) []int16 { return append(slices.Clone(c.PCM), make([]int16, c.Rate*3/10)...) }},
	{alter: func(c transcript.Clip) []int16 { return c.PCM[min(c.Rate*leadMS/1000, len(c.PCM)):] }, cutMS: leadMS},
}

// Retries is the number of different clips that Recognize may try.
var Retries = len(changes)

// Recognize recognises a clip, and a slightly changed one up to retries times while the text is doubtful. It returns the text
// with the least doubt, the earliest of several. An error of a further attempt ends it.
func Recognize(c transcript.Clip, retries int, decode func(transcript.Clip) (transcript.Recognition, error)) (
	transcript.Recognition, error) {
	best, err := decode(c)
	if err != nil {
		return best, err
	}
	least := Of(best.Text, c.Language)
	for _, v := range changes[:min(retries, len(changes))] {
		if least == None || c.DurationMS() < minRetryMS+v.cutMS || isSilent(c.PCM) {
			break
		}
		x := c
		x.PCM = v.alter(c)
		again, err := decode(x)
		if err != nil {
			break
		}
		if d := Of(again.Text, c.Language); d < least {
			best, least = shifted(again, v.cutMS, c.DurationMS()), d
		}
	}
	return best, nil
}

// isSilent reports whether a clip has no sound at all.
func isSilent(pcm []int16) bool {
	return !slices.ContainsFunc(pcm, func(v int16) bool { return v != 0 })
}

// shifted moves the times of words to those of the clip that was not changed.
func shifted(r transcript.Recognition, ms, duration int) transcript.Recognition {
	words := make([]transcript.Word, len(r.Words))
	for i, w := range r.Words {
		w.StartMS, w.EndMS = min(w.StartMS+ms, duration), min(w.EndMS+ms, duration)
		words[i] = w
	}
	r.Words = words
	return r
}

// withPeak scales samples so that the loudest has a level.
func withPeak(pcm []int16, level int) []int16 {
	peak := 1
	for _, v := range pcm {
		peak = max(peak, int(v), -int(v))
	}
	out := make([]int16, len(pcm))
	for i, v := range pcm {
		out[i] = int16(int(v) * level / peak)
	}
	return out
}
