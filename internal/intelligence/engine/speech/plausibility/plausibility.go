// Package plausibility detects recognition errors: repeated words, letters of another script, and speech without words. It recognises the
// audio of such a text again.
//
// Models that predict text word by word run into loops ("3, 2, 3, 2, 3, 2"), into other languages, or predict the end first. They often do
// not if the audio is slightly different.
package plausibility

import (
	"strings"
	"unicode"

	"golang.org/x/text/language"
)

// Doubt is a reason to believe that a text was not said, from none to the gravest.
type Doubt int

// Doubts.
const (
	None    Doubt = iota
	Loop          // words are repeated over and over
	Letters       // letters that the language does not have
	Empty         // no words
)

// Of returns the doubt about a text in a language (BCP 47, "" if it is not known).
func Of(text, language string) Doubt {
	switch {
	case !strings.ContainsFunc(text, isWordLetter):
		return Empty
	case hasForeignLetters(text, language):
		return Letters
	case isLoop(text):
		return Loop
	}
	return None
}

func isWordLetter(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }

// lettersOf maps scripts (ISO 15924) to the letters that their languages are written with. Latin letters are in names everywhere.
var lettersOf = map[string][]*unicode.RangeTable{
	"Latn": {}, "Cyrl": {unicode.Cyrillic}, "Grek": {unicode.Greek}, "Hebr": {unicode.Hebrew}, "Arab": {unicode.Arabic},
	"Hans": {unicode.Han, unicode.Bopomofo}, "Hant": {unicode.Han, unicode.Bopomofo},
	"Jpan": {unicode.Han, unicode.Hiragana, unicode.Katakana},
	"Kore": {unicode.Hangul, unicode.Han}, "Thai": {unicode.Thai}, "Deva": {unicode.Devanagari},
	"Beng": {unicode.Bengali}, "Taml": {unicode.Tamil},
	"Telu": {unicode.Telugu}, "Geor": {unicode.Georgian}, "Armn": {unicode.Armenian}, "Ethi": {unicode.Ethiopic},
}

// twoScripts are languages that are written in two scripts, whatever their tags say.
var twoScripts = map[string]bool{"sr": true, "bs": true, "az": true, "uz": true, "kk": true, "ku": true,
	"pa": true, "mn": true, "tk": true, "tg": true}

// hasForeignLetters reports whether a text has letters that a language does not have. A single one may be a sign, such as μ. Nothing is
// known of languages whose script is not in lettersOf.
func hasForeignLetters(text, tag string) bool {
	t, err := language.Parse(tag)
	if tag == "" || err != nil {
		return false
	}
	base, _ := t.Base()
	script, sure := t.Script()
	known, ok := lettersOf[script.String()]
	if !ok || sure == language.No || twoScripts[base.String()] {
		return false
	}
	run := 0
	for _, c := range text {
		switch {
		case !unicode.IsLetter(c) || unicode.In(c, unicode.Latin, unicode.Common, unicode.Inherited) || unicode.In(c, known...):
			run = 0
		case unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) || run > 0:
			return true
		default:
			run++
		}
	}
	return false
}

// Limits of loops.
const (
	loopRepeats   = 3 // how often a part of a text follows itself
	singleRepeats = 6 // how often a single word does: people say "no, no, no"
	loopWords     = 6 // words of the part at most
)

// isLoop reports whether a part of a text is repeated. Numbers are said digit by digit: the same one may follow itself often.
func isLoop(text string) bool {
	words := wordsOf(text)
	for size := 1; size <= loopWords; size++ {
		most := loopRepeats
		if size == 1 {
			most = singleRepeats
		}
		same := 0 // words in a row that equal the word size words before
		for i := size; i < len(words); i++ {
			if words[i] != words[i-size] || size == 1 && numbers[words[i]] {
				same = 0
				continue
			}
			same++
			if same >= size*(most-1) && (size == 1 || !allSame(words[i+1-size:i+1])) {
				return true
			}
		}
	}
	return false
}

// wordsOf returns the words of a text in lower case; characters of scripts without spaces are words.
func wordsOf(text string) (words []string) {
	var b strings.Builder
	for _, c := range strings.ToLower(text) {
		switch {
		case unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
			b.WriteString(" " + string(c) + " ")
		case unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.Is(unicode.Mn, c) || c == '\'':
			b.WriteRune(c)
		default:
			b.WriteByte(' ')
		}
	}
	return strings.Fields(b.String())
}

func allSame(words []string) bool {
	for _, w := range words {
		if w != words[0] {
			return false
		}
	}
	return true
}

// numbers are words of one digit, in figures, English, German, French, Spanish and Italian.
var numbers = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`0 1 2 3 4 5 6 7 8 9 zero oh o nought one two three four five six seven eight nine
		null eins zwei zwo drei vier fünf sechs sieben acht neun zéro un deux trois quatre cinq sept huit neuf
		cero uno dos tres cuatro cinco seis siete ocho nueve due tre quattro cinque sei sette otto nove`) {
		m[w] = true
	}
	return m
}()
