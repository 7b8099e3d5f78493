package nlp

import (
	"strings"
	"sync"
)

// wordLexicon returns the builtin lexicon, which has the frequency of words.
var wordLexicon = sync.OnceValue(NewWordEmbedding)

// EnglishProbability returns the approximate probability of a word in English; 0 if the lexicon does not have it.
func EnglishProbability(word string) float64 {
	l := wordLexicon()
	w := strings.TrimSuffix(strings.ReplaceAll(strings.ToLower(word), "’", "'"), "'s")
	if stopWords[w] {
		return 1e-2
	}
	at := l.find(hashOf(w))
	if at < 0 {
		at = l.find(l.baseForm(w))
	}
	if at < 0 {
		return 0
	}
	weight := float64(float32At(l.weights, at))
	return max(3e-4*(1/weight-1), 1e-8)
}

// InLexicon reports whether the builtin lexicon has a word.
func InLexicon(word string) bool { return EnglishProbability(word) > 0 }
