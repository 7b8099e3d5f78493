package engine

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// questionWords are words that begin a question.
var questions = wordSet("what where when who why how which can could would will do does did is are was were have has may shall should")

// formatSentence formats recognised words as a sentence: capital letters if certain, a full stop or question mark at
// the end, and numbers, dates, times and addresses in written form.
func readable(words []string) string {
	if len(words) == 0 {
		return ""
	}
	end := "."
	if questions[strings.ToLower(words[0])] && len(words) > 2 {
		end = "?"
	}
	out := written(words)
	for i, w := range out {
		out[i] = cased(w)
	}
	if !strings.Contains(out[0], "@") {
		out[0] = capital(out[0])
	}
	return strings.TrimSuffix(strings.Join(out, " "), ".") + end
}

// capitalizedWords always begin with a capital letter. May and March, which are other words too, are capitalised in
// dates only.
var capitals = wordSet(`january february april june july august september october november december monday tuesday wednesday thursday friday
	saturday sunday mr mrs ms mr. mrs. dr. christmas easter english american british french german spanish italian dutch irish scottish
	canadian australian european african asian indian chinese japanese mondays tuesdays wednesdays thursdays fridays saturdays sundays`)

// fixedSpellings maps words to a spelling that is neither lower case nor capitalised.
var shapes = map[string]string{"i": "I", "i'm": "I'm", "i'll": "I'll", "i've": "I've", "i'd": "I'd", "ok": "OK", "tv": "TV", "u.s.": "U.S.", "u.k.": "U.K.",
	"pm": "p.m.", "am.": "a.m.", "vat": "VAT", "pdf": "PDF", "usb": "USB", "iban": "IBAN"}

// withCapitals returns a word with the capital letters that it always has.
func cased(word string) string {
	if shape, ok := shapes[word]; ok {
		return shape
	}
	if capitals[word] {
		return capital(word)
	}
	return word
}

// capitalize returns a word with its first letter in upper case.
func capital(word string) string {
	first, size := utf8.DecodeRuneInString(word)
	return string(unicode.ToUpper(first)) + word[size:]
}

// wordSet returns the set of the words in a text.
func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}
