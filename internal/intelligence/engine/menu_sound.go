package engine

import (
	"slices"
	"strings"
)

// This file finds which phrase was meant where none was understood as it stands: engines that are not told phrases write what they hear in words
// of their own.

// How far what was understood may be from a phrase (0 is the same, 1 nothing in common).
const (
	phraseLimit  = 0.36
	phraseLead   = 0.12 // by which the next phrase has to be farther
	phraseWeight = 3.2  // of what is heard (soundWeight): shorter phrases have to be nearer
)

// sameWords are said in place of others, or sound like them, where nothing else is said.
var sameWords = map[string]string{"to": "two", "too": "two", "for": "four", "fore": "four", "won": "one", "ate": "eight", "tree": "three", "oh": "zero", "o": "zero",
	"yeah": "yes", "yep": "yes", "yup": "yes", "yea": "yes", "ya": "yes", "yah": "yes", "yes sir": "yes", "uh huh": "yes", "mm hmm": "yes", "of course": "yes",
	"nope": "no", "nah": "no", "know": "no", "nay": "no", "uh uh": "no", "not at all": "no"}

// keyWords stand before what a key says.
var keyWords = strings.Fields("press option number key choose select")

// phraseWords are the words of a text in small letters. A figure is one word, as it is said, so that two is not found in 22.
func phraseWords(text string) (words []string) {
	for _, w := range wordsAndFigures(text) {
		words = append(words, strings.Join(figureWords(w), ""))
	}
	return words
}

// spokenWords are the words of a text as they are said one by one.
func spokenWords(text string) (words []string) {
	for _, w := range wordsAndFigures(text) {
		words = append(words, figureWords(w)...)
	}
	return words
}

func wordsAndFigures(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && r != '\'' && (r < '0' || r > '9') })
}

// figureWords reads out a word that may have figures: up to 99 as a number, else one by one.
func figureWords(word string) (words []string) {
	if !hasDigit(word) {
		return []string{word}
	}
	if n := strings.Trim(word, "0123456789"); n == "" && len(word) <= 2 && (word[0] != '0' || len(word) == 1) {
		v := 0
		for _, c := range word {
			v = 10*v + int(c-'0')
		}
		if v < 20 {
			return []string{ones[v]}
		}
		return strings.Fields(tens[v/10] + strings.TrimSuffix(" "+ones[v%10], " zero"))
	}
	return humps(word)
}

// bareWords are words without what people say around what they want.
func bareWords(words []string) []string {
	for {
		n := len(words)
		for _, p := range slices.Concat(before, keyWords) {
			if f := strings.Fields(p); len(f) < len(words) && slices.Equal(words[:len(f)], f) {
				words = words[len(f):]
			}
		}
		for _, p := range after {
			if f := strings.Fields(p); len(f) < len(words) && slices.Equal(words[len(words)-len(f):], f) {
				words = words[:len(words)-len(f)]
			}
		}
		if len(words) == n {
			return words
		}
	}
}

// soundsLike is the phrase that a text sounds like, all of it but what people say around what they want. It is false where none is near
// enough, or another nearly as near.
func soundsLike(phrases []string, text string) (index int, ok bool) {
	said := phraseWords(text)
	bare := bareWords(said)
	if len(said) == 0 {
		return 0, false
	}
	for i, p := range phrases {
		if words := phraseWords(p); same(said, words) || same(bare, bareWords(words)) {
			return i, true
		}
	}
	return nearest(phrases, func(words []string) float64 {
		return min(phraseApart(said, words), phraseApart(bare, words), phraseApart(bare, bareWords(words)))
	})
}

// nearest is the phrase that is clearly nearer than all others, and near enough.
func nearest(phrases []string, apart func(words []string) float64) (index int, ok bool) {
	best, next := 1.0, 1.0
	for i, p := range phrases {
		words := phraseWords(p)
		if len(words) == 0 {
			continue
		}
		switch d := apart(words); {
		case d < best:
			index, best, next = i, d, best
		case d < next:
			next = d
		}
	}
	return index, best < phraseLimit && next-best > phraseLead
}

// same tells whether words are said in place of others.
func same(said, words []string) bool {
	one := strings.Join(said, " ")
	return slices.Equal(said, words) || sameWords[one] != "" && sameWords[one] == strings.Join(words, " ")
}

// phraseApart is how far words are from those of a phrase; farther for a short one.
func phraseApart(said, words []string) float64 {
	a, b := phonesOfAll(said), phonesOfAll(words)
	return soundsDiffer(b, a) / min(1, float64(soundWeight(b))/phraseWeight)
}

func phonesOfAll(words []string) (all []phoneme) {
	for _, w := range words {
		all = append(all, NewSounding().say(w)...)
	}
	return all
}
