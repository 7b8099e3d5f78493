package engine

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// This file writes the terms of a vocabulary where what was understood sounds like them: for recognisers that cannot be told what may be said.

// How far what was understood may be from a term (0 is the same, 1 nothing in common), by what it would be if it were not the term. They were
// chosen with the sentences of testdata/terms-said.txt and calls that name nobody.
const (
	strangeLimit  = 0.30 // words that English does not have
	mixedLimit    = 0.26 // one of them among ordinary ones
	capitalLimit  = 0.22 // known words written as names
	severalLimit  = 0.17 // ordinary words, two at least
	ordinaryLimit = 0.11 // one ordinary word that is not used often

	anchoredGain, anchoredMore = 1.5, 0.12  // by which limits grow where another word of the same name stands beside it
	heavyGain                  = 1.25       // by which they grow for what is long
	mergedCost                 = 0.015      // of each word more or fewer than the term has
	reach                      = 1.5        // limits up to which the letters of one word may make up for its sound
	spellingShare              = 0.4        // of letters, then
	exactLimit                 = 0.06       // of what has the letters of a term
	edgeCost                   = 0.08       // of beginning or ending with a word such as "to"
	commaCost                  = 0.03       // of a comma in the midst
	unsure, clearly            = 0.10, 0.03 // from the first on a term has to be nearer than the next one by the second
)

// How much there is to hear of what is looked for, as the sum of its phones' weights.
const (
	leastWeight    = 1.2 // nothing shorter is looked for
	fullWeight     = 4.6 // what is shorter has to be nearer
	familiarWeight = 9   // the same where everybody uses all the words
	heavyWeight    = 8.5 // what is longer may be farther
)

// longestRun is how many words a term may have been understood as.
const longestRun = 4

// A token is a word of a text with what stands around it.
type token struct {
	before, word, after string // punctuation, letters, punctuation; a possessive "'s" is among what is after
	plain               string // the word in small letters, without hyphens
	named               bool   // it is written as a name
	number              bool
	chance              float64 // how often it is used
	phones              []phoneme
}

// textTokens looks at the words of a text.
func textTokens(words []string) []token {
	all := make([]token, len(words))
	first := true // of a sentence
	for i, w := range words {
		t := peeled(w)
		t.plain = strings.ToLower(strings.ReplaceAll(folded(t.word), "-", ""))
		t.chance, t.number = chanceOf(t.word), isNumber(t.word)
		t.named = !first && isNamed(t.word)
		t.phones = NewSounding().sayWritten(t.word)
		all[i] = t
		first = strings.ContainsAny(t.after, ".?!") && len(t.word) > 1 && !titles[t.plain]
	}
	return all
}

// peeled takes a word out of what stands around it.
func peeled(text string) (t token) {
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

// titles have a full stop that ends no sentence.
var titles = wordSet("mr mrs ms dr st")

// chanceOf is how often a word is used; one with hyphens as seldom as the most seldom of its parts.
func chanceOf(word string) float64 {
	least := math.Inf(1)
	for _, part := range strings.Split(word, "-") {
		least = min(least, englishChance(part))
	}
	return least
}

// isNumber tells whether a word is one.
func isNumber(word string) bool {
	w := strings.ToLower(word)
	return hasDigit(w) || small[w] > 0 || round[w] > 0 || order[w] > 0 || w == "zero" || w == "hundred" || w == "thousand" || w == "million"
}

// isNamed tells whether a word is written as a name, unless it begins a sentence.
func isNamed(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return unicode.IsUpper(r) && word != "I" && !strings.HasPrefix(word, "I'")
}

// A fix writes a target in place of the words from one to another, which is not among them.
type fix struct {
	from, to int
	*target
	score float64 // how far it is
	gain  float64
}
