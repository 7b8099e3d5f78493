package timephrase

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// token is a word, a number or a sign of a text.
type token struct {
	text     string // in lower case
	from, to int
}

// reader reads expressions from tokens. Its methods move at beyond what they read, and leave it if they return false.
type reader struct {
	tokens   []token
	at       int
	bareHour bool // an hour may stand without a preposition
}

var tokenPattern = regexp.MustCompile(`(?i)\d{4}-\d\d-\d\d|\d{1,2}[:.]\d{2,}|\d+(?:st|nd|rd|th)\b|\d+|[ap]\.m\b\.?|[a-z]+(?:['’][a-z]+)*|[^\s]`)

func newReader(text string) *reader {
	r := &reader{}
	for _, m := range tokenPattern.FindAllStringIndex(text, -1) {
		word := strings.ReplaceAll(strings.ToLower(text[m[0]:m[1]]), "’", "'")
		if word == "-" { // "twenty-five"
			continue
		}
		r.tokens = append(r.tokens, token{word, m[0], m[1]})
	}
	return r
}

// peek returns the token at a distance from the next one; "" beyond the ends.
func (r *reader) peek(ahead int) string {
	if i := r.at + ahead; i >= 0 && i < len(r.tokens) {
		return r.tokens[i].text
	}
	return ""
}

// words reads a sequence of tokens, written with spaces.
func (r *reader) words(sequence string) bool {
	fields := strings.Fields(sequence)
	for i, f := range fields {
		if r.peek(i) != f {
			return false
		}
	}
	r.at += len(fields)
	return true
}

// any reads one of several sequences and returns it.
func (r *reader) any(sequences ...string) string {
	for _, s := range sequences {
		if r.words(s) {
			return s
		}
	}
	return ""
}

// skip reads all of the given sequences that follow.
func (r *reader) skip(sequences ...string) {
	for r.any(sequences...) != "" {
		continue
	}
}

// try calls a function and restores the position if it returns false.
func (r *reader) try(f func() bool) bool {
	at := r.at
	if f() {
		return true
	}
	r.at = at
	return false
}

var (
	numberWords = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
	tensWords   = strings.Fields("- - twenty thirty forty fifty sixty seventy eighty ninety")
	ordinals    = strings.Fields("zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth")
	weekdays    = strings.Fields("sunday monday tuesday wednesday thursday friday saturday")
	months      = strings.Fields("- january february march april may june july august september october november december")
	dayParts    = []string{"morning", "afternoon", "evening", "night"}
)

// number reads a number below a thousand, in digits or words.
func (r *reader) number() (n int, ok bool) {
	w := r.peek(0)
	if n, err := strconv.Atoi(w); err == nil && len(w) <= 3 {
		r.at++
		return n, true
	}
	if n := slices.Index(numberWords, w); n >= 0 {
		r.at++
		return n, true
	}
	n = slices.Index(tensWords, w)
	if n < 2 {
		return 0, false
	}
	r.at++
	if ones := slices.Index(numberWords, r.peek(0)); ones > 0 && ones < 10 {
		r.at++
		return 10*n + ones, true
	}
	return 10 * n, true
}

// ordinal reads an ordinal from first to thirty-first.
func (r *reader) ordinal() (n int, ok bool) {
	w := r.peek(0)
	if n, err := strconv.Atoi(strings.TrimRight(w, "sthndr")); err == nil && w[len(w)-1] > '9' {
		r.at++
		return n, n > 0 && n < 32
	}
	if n := slices.Index(ordinals, w); n > 0 {
		r.at++
		return n, true
	}
	if w == "thirtieth" {
		r.at++
		return 30, true
	}
	n = slices.Index(tensWords, w)
	ones := slices.Index(ordinals, r.peek(1))
	if n != 2 && n != 3 || ones < 1 || ones > 9 {
		return 0, false
	}
	r.at += 2
	return 10*n + ones, true
}

// index reads a word of a list and returns its position.
func (r *reader) index(list []string) (int, bool) {
	i := slices.Index(list, r.peek(0))
	if i < 0 || r.peek(0) == "-" {
		return 0, false
	}
	r.at++
	return i, true
}

// daypart reads "morning" and the like.
func (r *reader) daypart() string {
	if i, ok := r.index(dayParts); ok {
		return dayParts[i]
	}
	return ""
}
