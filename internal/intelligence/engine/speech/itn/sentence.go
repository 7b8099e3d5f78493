package itn

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"soniq/internal/intelligence/engine"
)

// questionWords are words that begin a question.
var questionWords = engine.WordSet("what where when who why how which can could would will do does did is are was were have has may shall should")

// Sentence formats recognised words as a sentence: capital letters if certain, a full stop or question mark at
// the end, and numbers, dates, times and addresses in written form.
func Sentence(words []string) string {
	if len(words) == 0 {
		return ""
	}
	end := "."
	if questionWords[strings.ToLower(words[0])] && len(words) > 2 {
		end = "?"
	}
	out := normalize(words)
	for i, w := range out {
		out[i] = withCapitals(w)
	}
	if !strings.Contains(out[0], "@") {
		out[0] = Capitalize(out[0])
	}
	return strings.TrimSuffix(strings.Join(out, " "), ".") + end
}

// capitalizedWords always begin with a capital letter. May and March, which are other words too, are capitalised in
// dates only.
var capitalizedWords = engine.WordSet(`january february april june july august september october november december monday tuesday wednesday
	thursday friday saturday sunday mr mrs ms mr. mrs. dr. christmas easter english american british french german spanish italian dutch
	irish scottish canadian australian european african asian indian chinese japanese mondays tuesdays wednesdays thursdays fridays
	saturdays sundays`)

// fixedSpellings maps words to a spelling that is neither lower case nor capitalised.
var fixedSpellings = map[string]string{"i": "I", "i'm": "I'm", "i'll": "I'll", "i've": "I've", "i'd": "I'd", "ok": "OK", "tv": "TV",
	"u.s.": "U.S.", "u.k.": "U.K.", "pm": "p.m.", "am.": "a.m.", "vat": "VAT", "pdf": "PDF", "usb": "USB", "iban": "IBAN"}

// withCapitals returns a word with the capital letters that it always has.
func withCapitals(word string) string {
	if shape, ok := fixedSpellings[word]; ok {
		return shape
	}
	if capitalizedWords[word] {
		return Capitalize(word)
	}
	return word
}

// Capitalize returns a word with its first letter in upper case.
func Capitalize(word string) string {
	first, size := utf8.DecodeRuneInString(word)
	return string(unicode.ToUpper(first)) + word[size:]
}
