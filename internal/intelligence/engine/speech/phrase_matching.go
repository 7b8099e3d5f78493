package speech

import (
	"slices"
	"strings"

	"soniq/internal/intelligence/engine/speech/itn"
)

// Phonetic matching of recognised text to the phrases of a menu, for recognisers that take no list of phrases and
// write similar-sounding words instead.

// Limits of the phonetic distance of a text from a phrase (0 is equal, 1 nothing in common).
const (
	phraseLimit      = 0.36
	phraseLead       = 0.12 // the second-best phrase must be farther by this
	phraseFullWeight = 3.2  // weight (phoneWeightSum) from which the full limit applies: shorter phrases have to be nearer
)

// phraseSynonyms maps words that are said instead of others, or sound like them, if they are the whole utterance.
var phraseSynonyms = map[string]string{"to": "two", "too": "two", "for": "four", "fore": "four", "won": "one", "ate": "eight",
	"tree": "three", "oh": "zero", "o": "zero",
	"yeah": "yes", "yep": "yes", "yup": "yes", "yea": "yes", "ya": "yes", "yah": "yes", "yes sir": "yes", "uh huh": "yes", "mm hmm": "yes",
	"of course": "yes", "nope": "no", "nah": "no", "know": "no", "nay": "no", "uh uh": "no", "not at all": "no"}

// keyWords precede the name of a key, as in "press two".
var keyWords = strings.Fields("press option number key choose select")

// phraseWords returns the words of a text in lower case. A number is one word, as it is spoken, so that two does not
// match in 22.
func phraseWords(text string) (words []string) {
	for _, w := range wordsAndNumbers(text) {
		words = append(words, strings.Join(numberWords(w), ""))
	}
	return words
}

// spokenWords returns the words of a text as they are spoken, each of a number on its own.
func spokenWords(text string) (words []string) {
	for _, w := range wordsAndNumbers(text) {
		words = append(words, numberWords(w)...)
	}
	return words
}

func wordsAndNumbers(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && r != '\'' && (r < '0' || r > '9') })
}

// numberWords returns a word that may contain digits as spoken words: up to 99 as a number, else digit by digit.
func numberWords(word string) (words []string) {
	if !hasDigit(word) {
		return []string{word}
	}
	if n := strings.Trim(word, "0123456789"); n == "" && len(word) <= 2 && (word[0] != '0' || len(word) == 1) {
		v := 0
		for _, c := range word {
			v = 10*v + int(c-'0')
		}
		if v < 20 {
			return []string{itn.Ones[v]}
		}
		return strings.Fields(itn.Tens[v/10] + strings.TrimSuffix(" "+itn.Ones[v%10], " zero"))
	}
	return splitWordParts(word)
}

// coreWords removes filler before and after the request, such as "I would like" and "please".
func coreWords(words []string) []string {
	for {
		n := len(words)
		for _, p := range slices.Concat(fillersBefore, keyWords) {
			if f := strings.Fields(p); len(f) < len(words) && slices.Equal(words[:len(f)], f) {
				words = words[len(f):]
			}
		}
		for _, p := range fillersAfter {
			if f := strings.Fields(p); len(f) < len(words) && slices.Equal(words[len(words)-len(f):], f) {
				words = words[:len(words)-len(f)]
			}
		}
		if len(words) == n {
			return words
		}
	}
}

// soundsLike returns the phrase that the whole text sounds like, apart from filler around the request. ok is false if
// no phrase is near enough, or if another is nearly as near.
func soundsLike(phrases []string, text string) (index int, ok bool) {
	said := phraseWords(text)
	bare := coreWords(said)
	if len(said) == 0 {
		return 0, false
	}
	for i, p := range phrases {
		if words := phraseWords(p); samePhrase(said, words) || samePhrase(bare, coreWords(words)) {
			return i, true
		}
	}
	return nearestPhrase(phrases, func(words []string) float64 {
		return min(phraseDistance(said, words), phraseDistance(bare, words), phraseDistance(bare, coreWords(words)))
	})
}

// nearestPhrase returns the phrase with the smallest distance. ok is false if it is beyond phraseLimit, or if the
// next one is within phraseLead of it.
func nearestPhrase(phrases []string, apart func(words []string) float64) (index int, ok bool) {
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

// samePhrase reports whether words are equal to those of a phrase, or a synonym of it.
func samePhrase(said, words []string) bool {
	one := strings.Join(said, " ")
	return slices.Equal(said, words) || phraseSynonyms[one] != "" && phraseSynonyms[one] == strings.Join(words, " ")
}

// phraseDistance returns the phonetic distance of words from those of a phrase. It is larger for a short phrase.
func phraseDistance(said, words []string) float64 {
	a, b := pronounceWords(said), pronounceWords(words)
	return pronunciationDistance(b, a) / min(1, float64(phoneWeightSum(b))/phraseFullWeight)
}

func pronounceWords(words []string) (all []phoneme) {
	for _, w := range words {
		all = append(all, NewLetterToSound().pronounce(w)...)
	}
	return all
}
