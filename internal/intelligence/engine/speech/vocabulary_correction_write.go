package speech

import (
	"strings"

	"soniq/internal/intelligence/transcript"
)

// correct replaces recognised words by the terms they sound like, in the text and in the words with times.
func (all *targetIndex) correct(h transcript.Recognition) transcript.Recognition {
	if all == nil {
		return h
	}
	h.Text = all.correctText(h.Text)
	if len(h.Words) > 0 {
		h.Words = all.correctWords(h.Words)
	}
	return h
}

// correctText replaces words of a text by the terms they sound like. The rest of the text stays unchanged, except for
// the space between words.
func (all *targetIndex) correctText(text string) string {
	words := strings.Fields(text)
	found := all.corrections(textTokens(words))
	if len(found) == 0 {
		return text
	}
	var out []string
	at := 0
	for i, f := range found {
		out = append(append(out, words[at:f.from]...), f.replacement(words)...)
		if i+1 < len(found) && f.isContinuedBy(found[i+1]) {
			out[len(out)-1] = strings.TrimSuffix(out[len(out)-1], ",")
		}
		at = f.to
	}
	return strings.Join(append(out, words[at:]...), " ")
}

// isContinuedBy reports whether another correction is the next word of the same name: then there is no comma between
// them.
func (f correction) isContinuedBy(next correction) bool {
	return f.to == next.from && f.term == next.term && f.wordIndex != wholeTerm && next.wordIndex == f.wordIndex+1
}

// replacement returns the words of the target with the punctuation of the words they replace.
func (f correction) replacement(words []string) []string {
	around := textTokens(words[f.from:f.to])
	out := append([]string(nil), f.words...)
	out[0] = around[0].before + out[0]
	out[len(out)-1] += around[len(around)-1].after
	return out
}

// correctWords replaces words with times by the terms they sound like. The words of a term divide the time of those
// they replace.
func (all *targetIndex) correctWords(heard []transcript.Word) (out []transcript.Word) {
	words := make([]string, len(heard))
	for i, w := range heard {
		words[i] = w.Text
	}
	at := 0
	found := all.corrections(textTokens(words))
	for i, f := range found {
		out = append(append(out, heard[at:f.from]...), f.withTimes(heard[f.from:f.to], f.replacement(words))...)
		if i+1 < len(found) && f.isContinuedBy(found[i+1]) {
			out[len(out)-1].Text = strings.TrimSuffix(out[len(out)-1].Text, ",")
		}
		at = f.to
	}
	return append(out, heard[at:]...)
}

// withTimes gives the replacement the times of the recognised words: one by one if they are equally many, else in
// proportion to the letters.
func (f correction) withTimes(heard []transcript.Word, words []string) (out []transcript.Word) {
	first, last, letters, certain := heard[0].StartMS, heard[len(heard)-1].EndMS, 0, 0.0
	for _, w := range words {
		letters += len(w)
	}
	for _, h := range heard {
		certain += h.Confidence / float64(len(heard))
	}
	past := 0
	for i, w := range words {
		t := transcript.Word{Text: w, Confidence: certain, StartMS: first + (last-first)*past/letters}
		past += len(w)
		t.EndMS = first + (last-first)*past/letters
		if len(words) == len(heard) {
			t = heard[i]
			t.Text = w
		}
		out = append(out, t)
	}
	return out
}
