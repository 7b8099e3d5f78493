package redact

import (
	"strings"
)

// reading has the tokens of passages, and the numbers that may be in them.
type reading struct {
	passages []Passage
	tokens   []token // in the order of the passages
	first    []int   // index of the first token of each passage, and the number of all
	runs     []run
	found    []finding
	taken    map[int]bool // tokens of findings
}

// run is a sequence of tokens of one speaker that may be a number, over pauses and the words of the other side.
type run struct {
	tokens []int // indexes of tokens that stand for characters
	chars  string
	redone bool  // a part was said again
	start  []int // position in chars of each token, and the length
}

// finding is a number of a kind.
type finding struct {
	kind   Kind
	chars  string
	tokens []int
}

func newReading(passages []Passage, language string) *reading {
	r := &reading{passages: passages, taken: map[int]bool{}}
	words := wordsFor(language)
	for i, p := range passages {
		r.first = append(r.first, len(r.tokens))
		r.tokens = append(r.tokens, tokens(i, p.Text, words)...)
	}
	r.first = append(r.first, len(r.tokens))
	r.joinTens()
	done := map[string]bool{}
	for _, p := range passages {
		if !done[p.Speaker] {
			done[p.Speaker] = true
			r.findRuns(p.Speaker)
		}
	}
	return r
}

// joinTens adds a digit to the word for a multiple of ten before it: forty one is 41.
func (r *reading) joinTens() {
	for i := range len(r.tokens) - 1 {
		t, next := &r.tokens[i], &r.tokens[i+1]
		ten, isTen := tens[t.text]
		if _, word := digitWords[next.text]; isTen && word && len(next.chars) == 1 && next.chars != "0" && t.passage == next.passage {
			t.chars, next.chars, next.filler = ten[:1]+next.chars, "", true
		}
	}
}

// findRuns finds the runs of a speaker.
func (r *reading) findRuns(speaker string) {
	var x run
	times, skip := 1, 0
	end := func() {
		if len(x.tokens) > 0 {
			x.start = append(x.start, len(x.chars))
			r.runs = append(r.runs, x)
		}
		x, times, skip = run{}, 1, 0
	}
	for i, t := range r.tokens {
		if r.passages[t.passage].Speaker != speaker {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		switch {
		case len(x.tokens) > 0 && r.isSpelling(x.tokens[len(x.tokens)-1], i):
			skip = spellingWords[t.text]
		case t.repeat > 0:
			times = t.repeat
		case t.chars != "":
			x.tokens, x.start = append(x.tokens, i), append(x.start, len(x.chars))
			x.chars += strings.Repeat(t.chars, times)
			times = 1
		case !t.filler:
			end()
		case t.corrects && len(x.tokens) > 0:
			x.redone = true
		}
	}
	end()
}

// spellingWords begin the example for a letter, as in "D wie Dora" and "D as in delta", with the number of words behind them.
var spellingWords = map[string]int{"wie": 1, "like": 1, "as": 2, "for": 1}

// isSpelling reports whether a token begins the example for the letter before it.
func (r *reading) isSpelling(letter, at int) bool {
	return spellingWords[r.tokens[at].text] > 0 && at == letter+1 && len(r.tokens[letter].original) == 1 && !r.tokens[letter].isDigits()
}

// window is a part of a run, from one token to before another.
type window struct {
	*run
	from, to int // indexes of run.tokens
}

func (w window) text() string { return w.chars[w.start[w.from]:w.start[w.to]] }

func (w window) size() int { return w.start[w.to] - w.start[w.from] }

// isDigits reports whether the window has only digits.
func (w window) isDigits() bool { return strings.Trim(w.text(), "0123456789") == "" }

// members returns the tokens of the window.
func (w window) members() []int { return w.tokens[w.from:w.to] }

// begins reports whether the window begins its run, or what its speaker said in a passage.
func (r *reading) begins(w window) bool {
	return w.from == 0 || r.tokens[w.tokens[w.from]].passage != r.tokens[w.tokens[w.from-1]].passage ||
		!r.tokens[w.tokens[w.from-1]].isDigits() || r.separated(w.tokens[w.from-1], w.tokens[w.from])
}

// ends reports whether the window ends its run, or what its speaker said in a passage.
func (r *reading) ends(w window) bool {
	return w.to == len(w.tokens) || r.tokens[w.tokens[w.to]].passage != r.tokens[w.tokens[w.to-1]].passage ||
		r.separated(w.tokens[w.to-1], w.tokens[w.to])
}

// separated reports whether two tokens of a passage have more than a space or a hyphen between them.
func (r *reading) separated(a, b int) bool {
	x, y := r.tokens[a], r.tokens[b]
	return strings.Trim(r.passages[x.passage].Text[x.to:y.from], " -\u00a0\u202f\u2011\u2013") != ""
}

// contextWords is the number of words before a number in which a cue counts.
const contextWords = 14

// before returns the words before a token, of all speakers in the order of their passages, enclosed by spaces.
func (r *reading) before(at, most int) string {
	var words []string
	for i := at - 1; i >= 0 && len(words) < most; i-- {
		words = append(words, r.tokens[i].text)
	}
	var b strings.Builder
	b.WriteByte(' ')
	for i := len(words) - 1; i >= 0; i-- {
		b.WriteString(words[i] + " ")
	}
	return b.String()
}

// cue returns the kind of the last cue before a window.
func (r *reading) cue(w window) (k Kind, found bool) {
	k, _, found = lastCue(r.before(w.tokens[w.from], contextWords))
	return k, found
}

// isAnnounced reports whether a cue of a kind is the last one before a window, with no other number between them.
func (r *reading) isAnnounced(w window, k Kind) bool {
	words := r.before(w.tokens[w.from], contextWords)
	got, end, found := lastCue(words)
	if !found || got != k {
		return false
	}
	for _, word := range strings.Fields(words[end:]) {
		if _, number := digitWords[word]; number || strings.ContainsAny(word, "0123456789") {
			return false
		}
	}
	return true
}

// add adds a finding. Tokens of an earlier finding are not found again.
func (r *reading) add(k Kind, w window) {
	for _, t := range w.members() {
		if r.taken[t] {
			return
		}
	}
	for _, t := range w.members() {
		r.taken[t] = true
	}
	r.found = append(r.found, finding{k, w.text(), w.members()})
}

// removals returns the numbers of some kinds.
func (r *reading) removals(kinds []Kind) []Removal {
	r.search()
	var all []Removal
	for _, f := range r.found {
		for _, k := range kinds {
			if k == f.kind {
				all = append(all, r.parts(f)...)
			}
		}
	}
	return inOrder(all)
}

// parts returns the parts of a finding by passage.
func (r *reading) parts(f finding) (all []Removal) {
	for _, i := range f.tokens {
		t := r.tokens[i]
		if n := len(all); n > 0 && all[n-1].Passage == t.passage {
			all[n-1].To = r.endOf(i)
			continue
		}
		all = append(all, Removal{Kind: f.kind, Passage: t.passage, From: r.startOf(i), To: r.endOf(i)})
	}
	return all
}

// startOf returns the start of a token in its passage, with "double" before it.
func (r *reading) startOf(i int) int {
	if i > 0 && r.tokens[i-1].passage == r.tokens[i].passage && r.tokens[i-1].repeat > 0 {
		return r.tokens[i-1].from
	}
	return r.tokens[i].from
}

// endOf returns the end of a token in its passage, with a digit that joinTens added.
func (r *reading) endOf(i int) int {
	if next := i + 1; next < len(r.tokens) && r.tokens[next].passage == r.tokens[i].passage && r.tokens[next].chars == "" {
		if _, word := digitWords[r.tokens[next].text]; word {
			return r.tokens[next].to
		}
	}
	return r.tokens[i].to
}
