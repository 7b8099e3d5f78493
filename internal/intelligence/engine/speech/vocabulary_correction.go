package speech

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/engine/nlp"
	"soniq/internal/intelligence/engine/speech/itn"
)

// Phonetic correction of recognised text to the terms of a vocabulary, for recognisers that take no list of terms:
// tokens and limits.

// Limits of the distance of recognised words from a term (0 is equal, 1 nothing in common), by the kind of the words.
// They were tuned with the sentences of testdata/terms-said.txt and calls that mention no names.
const (
	unknownWordsLimit = 0.30 // words that are not English
	mixedLimit        = 0.26 // one of them among English words
	capitalizedLimit  = 0.22 // English words written as names
	commonWordsLimit  = 0.17 // at least two common words
	uncommonWordLimit = 0.11 // one English word that is not common

	neighbourLimitFactor, neighbourLimitBonus = 1.5, 0.12 // factor and amount by which limits grow next to another word of the same name
	longTermLimitFactor                       = 1.25      // factor by which they grow for long terms
	wordCountCost                             = 0.015     // cost per word more or fewer than the term has
	// factor of the limit up to which the letters of one word may compensate for its sound
	maxSoundLimitFactor            = 1.5
	spellingShare                  = 0.4  // share of the letters in the distance then
	sameLettersLimit               = 0.06 // limit for words with the same letters as the term
	stopWordEdgeCost               = 0.08 // cost of beginning or ending with a stop word such as "to"
	commaCost                      = 0.03 // cost of a comma between the words
	ambiguousFrom, ambiguityMargin = 0.10,
		0.03 // from the first distance on, a term has to be nearer than the next one by the second
)

// Phonetic weight of a term: the sum of the weights of its phones.
const (
	minTermWeight         = 1.2 // shorter terms are not searched
	fullLimitWeight       = 4.6 // shorter terms have to be nearer
	commonWordsFullWeight = 9   // the same if all words of the text are common
	longTermWeight        = 8.5 // longer terms may be farther
)

// maxRunWords is the number of words that a term may have been recognised as.
const maxRunWords = 4

// token is a word of a text with the punctuation around it.
type token struct {
	before, word, after string // punctuation, letters, punctuation; a possessive "'s" belongs to after
	plain               string // the word in lower case, without hyphens
	capitalized         bool   // it is capitalised within a sentence
	number              bool
	probability         float64 // its probability in English
	phones              []phoneme
}

// textTokens returns the tokens of the words of a text.
func textTokens(words []string) []token {
	all := make([]token, len(words))
	first := true // first word of a sentence
	for i, w := range words {
		t := splitPunctuation(w)
		t.plain = strings.ToLower(strings.ReplaceAll(folded(t.word), "-", ""))
		t.probability, t.number = wordProbability(t.word), isNumber(t.word)
		t.capitalized = !first && isCapitalized(t.word)
		t.phones = NewLetterToSound().pronounceWritten(t.word)
		all[i] = t
		first = strings.ContainsAny(t.after, ".?!") && len(t.word) > 1 && !titles[t.plain]
	}
	return all
}

// splitPunctuation separates a word from the punctuation around it.
func splitPunctuation(text string) (t token) {
	letter := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	t.word = strings.TrimLeftFunc(text, func(r rune) bool { return !letter(r) })
	t.before = text[:len(text)-len(t.word)]
	rest := strings.TrimRightFunc(t.word, func(r rune) bool { return !letter(r) })
	t.word, t.after = rest, t.word[len(rest):]
	for _, s := range []string{"'s", "’s"} {
		if cut, ok := strings.CutSuffix(t.word, s); ok && cut != "" {
			t.word, t.after = cut, s+t.after
		}
	}
	return t
}

// titles end with a full stop that ends no sentence.
var titles = engine.WordSet("mr mrs ms dr st")

// wordProbability returns the probability of a word in English; for one with hyphens, that of its rarest part.
func wordProbability(word string) float64 {
	least := math.Inf(1)
	for _, part := range strings.Split(word, "-") {
		least = min(least, nlp.EnglishProbability(part))
	}
	return least
}

// isNumber reports whether a word is a number or contains a digit.
func isNumber(word string) bool {
	w := strings.ToLower(word)
	return hasDigit(w) || itn.SmallNumbers[w] > 0 || itn.RoundNumbers[w] > 0 || itn.OrdinalNumbers[w] > 0 || w == "zero" ||
		w == "hundred" || w == "thousand" || w == "million"
}

// isCapitalized reports whether a word is written as a name. The first word of a sentence always is.
func isCapitalized(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return unicode.IsUpper(r) && word != "I" && !strings.HasPrefix(word, "I'")
}

// correction replaces the words from one index up to another, exclusive, by a target.
type correction struct {
	from, to int
	*target
	distance float64 // distance
	gain     float64
}
