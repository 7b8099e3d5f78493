package engine

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// questions are words that open a question.
var questions = wordSet("what where when who why how which can could would will do does did is are was were have has may shall should")

// readable writes recognised words as a sentence: capital letters where they are sure, a full stop or question
// mark at the end, and numbers, dates, times and addresses as they are written.
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

// capitals are words that always begin with one. May and March, which are other words too, have theirs in dates only.
var capitals = wordSet(`january february april june july august september october november december monday tuesday wednesday thursday friday
	saturday sunday mr mrs ms mr. mrs. dr. christmas easter english american british french german spanish italian dutch irish scottish
	canadian australian european african asian indian chinese japanese mondays tuesdays wednesdays thursdays fridays saturdays sundays`)

// shapes are words that are written in a way of their own.
var shapes = map[string]string{"i": "I", "i'm": "I'm", "i'll": "I'll", "i've": "I've", "i'd": "I'd", "ok": "OK", "tv": "TV", "u.s.": "U.S.", "u.k.": "U.K.",
	"pm": "p.m.", "am.": "a.m.", "vat": "VAT", "pdf": "PDF", "usb": "USB", "iban": "IBAN"}

// cased gives a word the capitals it always has.
func cased(word string) string {
	if shape, ok := shapes[word]; ok {
		return shape
	}
	if capitals[word] {
		return capital(word)
	}
	return word
}

// capital makes the first letter of a word a capital.
func capital(word string) string {
	first, size := utf8.DecodeRuneInString(word)
	return string(unicode.ToUpper(first)) + word[size:]
}

// wordSet makes a set of the words in a text.
func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}
