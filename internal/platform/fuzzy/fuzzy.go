// Package fuzzy compares names that are misspelt, or spelt as they sound: Meier and Mayer, Smith and Smyth, Müller and Mueller.
package fuzzy

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Name is a name that is searched for.
type Name struct{ words []word }

// word is a word of a name in the forms that are compared.
type word struct {
	plain string // lower case, without marks
	short string // letters that sound alike are written alike
	sound string
}

// New returns the name in a text. ok is false if it has no word of at least three letters, or signs that no name has.
func New(text string) (n Name, ok bool) {
	if strings.ContainsAny(text, "0123456789@_%/\\") {
		return Name{}, false
	}
	for _, w := range words(text) {
		ok = ok || len(w) >= 3
		n.words = append(n.words, newWord(w))
	}
	return n, ok && len(n.words) <= maxWords
}

// maxWords is the number of words of a name that are compared at most.
const maxWords = 6

// Limits of the edits by which words may differ.
const (
	oneEditFrom  = 4 // letters
	twoEditsFrom = 7
)

// Distance returns how far a text is from the name: 0 if it has all words of it, in any order. ok is false if a word has no similar one.
func (n Name) Distance(text string) (sum int, ok bool) {
	all := words(text)
	for _, w := range n.words {
		best := -1
		for _, x := range all {
			if d, ok := w.distance(x); ok && (best < 0 || d < best) {
				best = d
			}
		}
		if best < 0 {
			return 0, false
		}
		sum += best
	}
	return sum, true
}

// distance returns how far a word is, in edits; words that only sound alike are one further.
func (w word) distance(plain string) (int, bool) {
	if w.plain == plain {
		return 0, true
	}
	if n := len(w.plain) - len(plain); n > 4 || n < -4 || len(plain) < 3 || len(w.plain) < 3 {
		return 0, false
	}
	longest := max(len(w.plain), len(plain))
	limit := 0
	switch {
	case longest >= twoEditsFrom:
		limit = 2
	case longest >= oneEditFrom:
		limit = 1
	}
	if d := edits(w.plain, plain, limit); d <= limit {
		return d, true
	}
	x := newWord(plain)
	if most := max(len(w.short), len(x.short)) / 2; w.sound != "" && w.sound == x.sound {
		if d := edits(w.short, x.short, most); d <= most {
			return max(d, 1) + 1, true
		}
	}
	return 0, false
}

func newWord(plain string) word {
	w := word{plain: plain, sound: sound(plain)}
	text := alike.Replace(plain)
	var b strings.Builder
	for i := range len(text) {
		if i == 0 || text[i] != text[i-1] {
			b.WriteByte(text[i])
		}
	}
	w.short = b.String()
	return w
}

// alike writes letters that sound alike in English and German alike.
var alike = strings.NewReplacer("sch", "s", "ph", "f", "th", "t", "ck", "k", "dt", "t", "tz", "z", "ch", "k", "gh", "", "y", "i", "j", "i",
	"v", "f", "w", "f", "c", "k", "q", "k", "d", "t", "b", "p", "g", "k", "x", "ks")

// words returns the words of a text in lower case, in letters of ASCII where that is possible.
func words(text string) []string {
	var b strings.Builder
	for _, c := range norm.NFKD.String(strings.ToLower(text)) {
		switch {
		case unicode.Is(unicode.Mn, c) || c == '\'' || c == '’':
		case letters[c] != "":
			b.WriteString(letters[c])
		case unicode.IsLetter(c) || unicode.IsDigit(c):
			b.WriteRune(c)
		default:
			b.WriteByte(' ')
		}
	}
	return strings.Fields(b.String())
}

// letters are letters that Unicode does not take apart.
var letters = map[rune]string{'ß': "ss", 'æ': "ae", 'œ': "oe", 'ø': "o", 'ł': "l", 'đ': "d", 'ð': "d", 'þ': "th", 'ı': "i"}

// edits returns the number of letters to insert, delete, replace or swap with their neighbour (optimal string alignment); more than limit
// if it is above it.
func edits(a, b string, limit int) int {
	if n := len(a) - len(b); n > limit || n < -limit {
		return limit + 1
	}
	var rows [3][]int
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := range len(a) {
		two, one, now := rows[i%3], rows[(i+1)%3], rows[(i+2)%3]
		now[0] = i + 1
		least := now[0]
		for j := range len(b) {
			d := one[j]
			if a[i] != b[j] {
				d++
			}
			d = min(d, one[j+1]+1, now[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, two[j-1]+1)
			}
			now[j+1] = d
			least = min(least, d)
		}
		if least > limit {
			return limit + 1
		}
	}
	return rows[(len(a)+1)%3][len(b)]
}
