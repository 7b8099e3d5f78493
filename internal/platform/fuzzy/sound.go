package fuzzy

import "strings"

// SoundAlike reports whether two words in lower case have the same sound.
func SoundAlike(a, b string) bool {
	x := sound(strings.Join(words(a), ""))
	return x != "" && x == sound(strings.Join(words(b), ""))
}

// sound returns the code of a word by the Cologne phonetics (Hans Joachim Postel, 1969): words that sound alike have the same code. It was
// made for German and tells English names apart as well. Letters beyond a to z have no sound.
func sound(word string) string {
	var code []byte
	last := byte(0)
	for i := range len(word) {
		previous, next := byte(0), byte(0)
		if i > 0 {
			previous = word[i-1]
		}
		if i+1 < len(word) {
			next = word[i+1]
		}
		for _, c := range []byte(soundOf(word[i], previous, next)) {
			if c != last && (c != '0' || len(code) == 0) {
				code = append(code, c)
			}
			last = c
		}
	}
	return string(code)
}

// soundOf returns the code of a letter between two others.
func soundOf(c, previous, next byte) string {
	in := func(x byte, set string) bool { return x != 0 && strings.IndexByte(set, x) >= 0 }
	switch {
	case in(c, "aeiouyj"):
		return "0"
	case c == 'p' && next == 'h', in(c, "fvw"):
		return "3"
	case in(c, "bp"):
		return "1"
	case in(c, "dt"):
		if in(next, "csz") {
			return "8"
		}
		return "2"
	case in(c, "gkq"):
		return "4"
	case c == 'c':
		return soundOfC(previous, next)
	case c == 'x':
		if in(previous, "ckq") {
			return "8"
		}
		return "48"
	case c == 'l':
		return "5"
	case in(c, "mn"):
		return "6"
	case c == 'r':
		return "7"
	case in(c, "sz"):
		return "8"
	}
	return ""
}

// soundOfC returns the code of the letter c.
func soundOfC(previous, next byte) string {
	hard := next != 0 && strings.IndexByte("ahkoqux", next) >= 0
	if previous == 0 {
		hard = hard || next == 'l' || next == 'r'
	}
	if hard && previous != 's' && previous != 'z' {
		return "4"
	}
	return "8"
}
