package redact

import (
	"strings"
	"unicode"
)

// token is a word or a number of a passage.
type token struct {
	passage  int
	from, to int    // bytes
	text     string // in lower case
	original string
	chars    string // the digits or letters it stands for in a number; "" if it is no part of one
	repeat   int    // of "double", "triple"
	filler   bool   // may be inside a number
	corrects bool   // takes back digits before it
}

// isDigits reports whether the token stands for digits only.
func (t token) isDigits() bool { return t.chars != "" && strings.Trim(t.chars, "0123456789") == "" }

// tokens splits the text of a passage.
func tokens(index int, text string, words map[string]string) (all []token) {
	from := -1
	flush := func(to int) {
		if from >= 0 {
			all = append(all, newToken(index, from, to, text[from:to], words))
		}
		from = -1
	}
	for i, c := range text {
		switch {
		case unicode.IsLetter(c) || unicode.IsDigit(c) || c == '\'':
			if from < 0 {
				from = i
			}
		case unicode.Is(unicode.Mn, c) && from >= 0:
		default:
			flush(i)
		}
	}
	flush(len(text))
	return all
}

func newToken(index, from, to int, text string, words map[string]string) token {
	t := token{passage: index, from: from, to: to, original: text, text: strings.ToLower(text)}
	t.filler, t.corrects = fillers[t.text] || corrections[t.text], corrections[t.text]
	t.repeat = repeats[t.text]
	switch ascii, ok := asciiDigits(text); {
	case ok:
		t.chars = ascii
	case words[t.text] != "":
		t.chars = words[t.text]
	case spelled[t.text] != "":
		t.chars = spelled[t.text]
	default:
		t.chars = germanNumber(t.text)
	}
	if t.chars == "" && isCode(text) {
		t.chars = strings.ToUpper(text)
	}
	return t
}

// asciiDigits converts a token of decimal digits of any script.
func asciiDigits(text string) (string, bool) {
	var b strings.Builder
	for _, c := range text {
		d, ok := digit(c)
		if !ok {
			return "", false
		}
		b.WriteByte('0' + d)
	}
	return b.String(), true
}

// digit returns the value of a decimal digit. The digits of a script follow each other in Unicode, and begin at a multiple of their zero.
func digit(c rune) (byte, bool) {
	if c >= '0' && c <= '9' {
		return byte(c - '0'), true
	}
	if !unicode.Is(unicode.Nd, c) {
		return 0, false
	}
	zero := c
	for unicode.Is(unicode.Nd, zero-1) && c-zero < 9 {
		zero--
	}
	return byte(c - zero), true
}

// isCode reports whether a token may be a part of a number with letters: one letter, capitals up to four, or letters and digits mixed.
func isCode(text string) bool {
	letters, digits, upper := 0, 0, true
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'A' && c <= 'Z':
			letters++
		case c >= 'a' && c <= 'z':
			letters++
			upper = false
		default:
			return false
		}
	}
	return digits > 0 || letters == 1 || upper && letters <= 4 || letters == 2 && ibanCountries[text]
}

// ibanCountries are the codes that are read as such in lower case too. Others are words, such as "is" and "at".
var ibanCountries = set("de gb ch nl fr pl dk cz lu li hr hu")

// fillers may stand inside a number that is read out.
var fillers = set("and then uh um er erm mhm dash hyphen minus space so okay ok yes und dann äh ähm hm strich bindestrich leerzeichen ja also genau dot point slash punkt")

// corrections may stand inside a number of which a part is said again.
var corrections = set("sorry no wait nein moment entschuldigung pardon correction korrektur quatsch falsch wrong nochmal nochmals again")

// spelled are the words of the spelling alphabets (ICAO, DIN 5009) that are no usual words.
var spelled = spelling("alfa alpha bravo charlie delta echo foxtrot golf hotel india juliett juliet kilo lima mike november oscar papa quebec romeo " +
	"sierra tango uniform victor whiskey xray yankee zulu anton berta cäsar dora emil friedrich gustav heinrich ida julius kaufmann ludwig martha " +
	"nordpol otto paula quelle richard samuel siegfried theodor ulrich viktor wilhelm xanthippe ypsilon zacharias")

func spelling(words string) map[string]string {
	m := map[string]string{}
	for w := range strings.FieldsSeq(words) {
		m[w] = strings.ToUpper(w[:1])
	}
	return m
}

// repeats multiply the digit behind them.
var repeats = map[string]int{"double": 2, "triple": 3, "treble": 3, "doppel": 2, "zweimal": 2, "dreimal": 3, "viermal": 4, "quadruple": 4}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
