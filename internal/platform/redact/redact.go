// Package redact finds card numbers, account numbers and other numbers that must not be kept in what was said or written, and removes them.
// It is the only place that decides what such a number is. Every writer of spoken or written words applies a [Policy] of it first.
//
// Numbers are found in figures and in spoken digits, over pauses and over the words of the other side. A number with check digits is
// found wherever it stands; one without needs words before it that announce it.
package redact

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// Kind is a kind of number that is removed.
type Kind string

// Kinds of numbers.
const (
	Card    Kind = "card"    // payment card
	Expiry  Kind = "expiry"  // expiry date of a card
	CVV     Kind = "cvv"     // security code of a card
	Account Kind = "account" // IBAN, bank account, sort code, routing number
	Health  Kind = "health"  // number of a health insurance or service
	Social  Kind = "social"  // social security, tax or identity number
	PIN     Kind = "pin"     // secret number
)

// Kinds lists all kinds.
var Kinds = []Kind{Card, Expiry, CVV, Account, Health, Social, PIN}

// placeholder returns the text that replaces a number.
func (k Kind) placeholder() string { return "[" + string(k) + "]" }

// Policy is what an organisation removes. The zero Policy removes nothing.
type Policy struct {
	Kinds    []Kind
	Audio    bool   // silence the numbers in recordings too
	Messages bool   // remove the numbers from text messages too
	Language string // of the speakers (BCP 47); selects the words for digits beside English and German
}

// Enabled reports whether the policy removes anything.
func (p Policy) Enabled() bool { return len(p.Kinds) > 0 }

// In returns the policy for speakers of a language.
func (p Policy) In(language string) Policy {
	p.Language = language
	return p
}

// Policies returns the policies of organisations.
type Policies interface {
	Redaction(ctx context.Context, org string) (Policy, error)
}

// OrOff returns policies, or Off for nil.
func OrOff(p Policies) Policies {
	if p == nil {
		return Off{}
	}
	return p
}

// Off are the Policies that remove nothing.
type Off struct{}

// Redaction implements Policies.
func (Off) Redaction(context.Context, string) (Policy, error) { return Policy{}, nil }

// Word is a word with its time in milliseconds.
type Word struct {
	Text           string
	StartMS, EndMS int
}

// Passage is what one side said without a pause, or a text without a time.
type Passage struct {
	Speaker        string
	Text           string
	StartMS, EndMS int
	Words          []Word // of the text, in order; may be nil
	Source         int    // any number by which the caller knows the passage
}

// Removal is a number that was removed, or the part of one that is in one passage.
type Removal struct {
	Kind           Kind
	Passage        int // index
	From, To       int // bytes of the text before the removal
	StartMS, EndMS int // the whole passage if its words have no times
}

// Text returns a text without the numbers. Its lines may begin with the name of a speaker and a colon.
func (p Policy) Text(text string) string {
	if !p.Enabled() || text == "" {
		return text
	}
	lines, heads := linesOf(text)
	out, _ := p.Apply(lines)
	return joinLines(out, heads)
}

// Isolated returns a text without the numbers and without digits at its start and its end. These may belong to a number that began in the
// text before, or that goes on in the text after.
func (p Policy) Isolated(text string) string {
	if !p.Enabled() || text == "" {
		return text
	}
	lines, heads := linesOf(text)
	r := newReading(lines, p.Language)
	all := r.removals(p.Kinds)
	for _, x := range r.runs {
		if at := x.tokens[0]; digitsIn(x.chars) >= openDigits && (r.isLast(x) || r.tokens[at].from == 0) {
			all = append(all, r.parts(finding{"number", x.chars, x.tokens})...)
		}
	}
	all = inOrder(all)
	for i := range lines {
		var mine []Removal
		for _, a := range all {
			if a.Passage == i {
				mine = append(mine, a)
			}
		}
		lines[i] = lines[i].without(mine)
	}
	return joinLines(lines, heads)
}

// longestName is the length of the longest name of a speaker at the start of a line.
const longestName = 24

// linesOf returns the lines of a text as passages, and the names of their speakers with what follows them.
func linesOf(text string) (lines []Passage, heads []string) {
	for line := range strings.SplitSeq(text, "\n") {
		head, rest, ok := strings.Cut(line, ": ")
		if !ok || len(head) > longestName || strings.ContainsAny(head, "0123456789") {
			head, rest = "", line
		} else {
			head += ": "
		}
		lines, heads = append(lines, Passage{Speaker: head, Text: rest}), append(heads, head)
	}
	return lines, heads
}

func joinLines(lines []Passage, heads []string) string {
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(heads[i] + l.Text)
	}
	return b.String()
}

// Apply returns passages, which are in the order of their start, without the numbers, and what was removed.
func (p Policy) Apply(passages []Passage) ([]Passage, []Removal) {
	if !p.Enabled() {
		return passages, nil
	}
	found := newReading(passages, p.Language).removals(p.Kinds)
	out := slices.Clone(passages)
	for i := range out {
		var mine []Removal
		for j := range found {
			if r := &found[j]; r.Passage == i {
				r.setTimes(out[i])
				mine = append(mine, *r)
			}
		}
		if len(mine) > 0 {
			out[i] = out[i].without(mine)
		}
	}
	return out, found
}

// setTimes sets the times of a removal: those of its words, or of the whole passage.
func (r *Removal) setTimes(p Passage) {
	r.StartMS, r.EndMS = p.StartMS, p.EndMS
	at, ok := p.positions()
	if !ok {
		return
	}
	first := true
	for i, w := range p.Words {
		if at[i] >= r.To || at[i]+len(w.Text) <= r.From {
			continue
		}
		if first {
			r.StartMS, first = w.StartMS, false
		}
		r.EndMS = w.EndMS
	}
}

// positions returns the position of each word in the text; ok is false if a word is not in it, or there are none.
func (p Passage) positions() (at []int, ok bool) {
	lower, from := strings.ToLower(p.Text), 0
	if len(lower) != len(p.Text) {
		lower = p.Text
	}
	for _, w := range p.Words {
		text := strings.ToLower(w.Text)
		i := strings.Index(lower[from:], text)
		if i < 0 || len(text) != len(w.Text) {
			return nil, false
		}
		at = append(at, from+i)
		from += i + len(text)
	}
	return at, len(at) > 0
}

// without returns the passage without the removals, which are in order.
func (p Passage) without(removed []Removal) Passage {
	var b strings.Builder
	last := 0
	for _, r := range removed {
		b.WriteString(p.Text[last:r.From])
		b.WriteString(r.Kind.placeholder())
		last = r.To
	}
	b.WriteString(p.Text[last:])
	at, ok := p.positions()
	words := p.Words
	p.Words = nil // their numbers cannot be told apart from the others
	for i, w := range words {
		if !ok {
			break
		}
		of := slices.IndexFunc(removed, func(r Removal) bool { return at[i] < r.To && at[i]+len(w.Text) > r.From })
		switch {
		case of < 0:
			p.Words = append(p.Words, w)
		case i == 0 || at[i-1]+len(words[i-1].Text) <= removed[of].From:
			p.Words = append(p.Words, Word{removed[of].Kind.placeholder(), removed[of].StartMS, removed[of].EndMS})
		}
	}
	p.Text = b.String()
	return p
}

// inOrder sorts removals by passage and position, and drops those within another one.
func inOrder(all []Removal) []Removal {
	slices.SortStableFunc(all, func(a, b Removal) int {
		return cmp.Or(a.Passage-b.Passage, a.From-b.From, b.To-a.To)
	})
	var out []Removal
	for _, r := range all {
		if n := len(out); n > 0 && out[n-1].Passage == r.Passage && r.From < out[n-1].To {
			out[n-1].To = max(out[n-1].To, r.To)
			continue
		}
		out = append(out, r)
	}
	return out
}
