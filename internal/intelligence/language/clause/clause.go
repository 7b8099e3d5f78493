// Package clause reads English speech into clauses and says of each word whether it is asserted: negated, conditional, asked, reported,
// corrected, uncertain or past. It is the only reader of clauses: every rule about a call works on its result. It reads recognised text
// without punctuation as well as written text.
package clause

import (
	"strings"

	"soniq/internal/intelligence/language/timephrase"
	"soniq/internal/platform/lazyregexp"
)

// Clause is a sentence, or a part of one if recognised speech has no full stops.
type Clause struct {
	Text       string // with its punctuation
	Question   bool   // asks for information
	Request    bool   // asks for an action: "can you …"
	Correction bool   // corrects itself: "at three, no, four"
	words      []word
	parts      []part
	negators   []negator
	retracted  bool // the next sentence takes it back
	dependent  bool // depends on the condition of the sentence before
}

// word is a word or a sign of a clause.
type word struct {
	text string // in lower case
	from int
}

// part is a part of a clause with a verb of its own, or a member of a list.
type part struct {
	from, to    int  // words
	list        bool // continues the part before
	condition   bool // states a condition
	conditional bool // states a condition or depends on one
	question    bool
	corrected   bool
	uncertain   bool
	past        bool
}

// State is what a clause says about one of its words.
type State struct {
	Negated     bool
	Condition   bool // inside a condition
	Conditional bool // inside a condition, or depending on one
	Asked       bool // inside a question, direct or indirect
	Requested   bool // the clause asks for an action
	Reported    bool // somebody else's speech
	Corrected   bool // taken back
	Uncertain   bool // "might", "perhaps", "would"
	Past        bool // over
}

// Asserted reports whether the word is stated as it stands: positive, unconditional, not asked, not taken back.
func (s State) Asserted() bool {
	return !s.Negated && !s.Conditional && !s.Asked && !s.Corrected
}

// Certain reports whether the word is asserted by the speaker without a reserve.
func (s State) Certain() bool { return s.Asserted() && !s.Reported && !s.Uncertain }

var (
	sentenceEnd = lazyregexp.New(`[.!?]+(?:\s+|$)`)
	// runOn matches words that begin a new clause in recognised speech, which has no full stops.
	runOn = lazyregexp.New(`(?i)\b(?:i will|i'll|we will|we'll|i am going to|let me|please|thank you|i have (?:opened|sent|booked|ordered|created|moved|marked|issued)|go ahead|is there|can i|could you|would you|should i)\b`)
	// takesBack matches the beginning of a sentence that takes the sentence before back.
	takesBack = lazyregexp.New(`(?i)^(?:no,? wait|wait,? no|hold on,? no|scratch that|forget that|actually,? no|no,? sorry|no,? (?:i|we)(?:'ll| will| am| are|'m|'re)|sorry,? no)\b`)
	// correctionLead matches what introduces a corrected time.
	correctionLead = lazyregexp.New(`(?i)^(?:(?:no|sorry|wait|i mean|i meant|actually|rather|or rather|make that|make it|correction|oh)[,.]? +)+`)
)

// Read splits the words of one speaker's turn into clauses.
func Read(text string) []Clause {
	var out []Clause
	for _, s := range sentences(text) {
		for _, p := range splitRunOn(s) {
			c := read(p)
			if n := len(out); n > 0 {
				if takesBack.MatchString(p) && !out[n-1].Question && !out[n-1].Request {
					out[n-1].retracted = true
				}
				c.dependent = strings.HasPrefix(strings.ToLower(p), "then ") && out[n-1].allConditional()
			}
			out = append(out, c.splitRetracted()...)
		}
	}
	return out
}

// splitRetracted returns a clause as what it takes back and the rest: "I will call, no, I will write".
func (c Clause) splitRetracted() []Clause {
	for i, p := range c.parts {
		if i == 0 || p.corrected || !c.parts[i-1].corrected {
			continue
		}
		at := c.words[p.from].from
		back, rest := read(strings.TrimSpace(c.Text[:at])), read(c.Text[at:])
		back.retracted, rest.dependent = true, c.dependent
		return []Clause{back, rest}
	}
	return []Clause{c}
}

// sentences splits at punctuation and keeps it. A sentence that only corrects a time stays with the one before.
func sentences(text string) []string {
	var out []string
	at, before := 0, 0
	add := func(to int) {
		s := strings.TrimSpace(text[at:to])
		lead := correctionLead.FindString(s)
		if len(out) > 0 && lead != "" && timephrase.Only(s[len(lead):]) {
			out[len(out)-1] = strings.TrimSpace(text[before:to])
		} else {
			out, before = append(out, s), at
		}
		at = to
	}
	for _, m := range sentenceEnd.FindAllStringIndex(text, -1) {
		if (m[1]-at > 3 || m[1] == len(text)) && !halfOfDay.MatchString(text[:m[1]]) { // "Mr. X", initials and "3 p.m. today" stay whole
			add(m[1])
		}
	}
	if strings.TrimSpace(text[at:]) != "" {
		add(len(text))
	}
	return out
}

// halfOfDay matches an a.m. or p.m. that does not end a text.
var halfOfDay = lazyregexp.New(`(?i)\d ?[ap]\.m\. $`)

// splitRunOn splits a long sentence without commas before words that begin a new clause.
func splitRunOn(s string) []string {
	if len(strings.Fields(s)) < 12 || strings.ContainsAny(s, ",;:") {
		return []string{s}
	}
	var out []string
	at := 0
	for _, m := range runOn.FindAllStringIndex(s, -1) {
		if len(strings.Fields(s[at:m[0]])) >= 4 && !endsInConnective(s[:m[0]]) && !supposes.MatchString(s[at:m[0]]) {
			out = append(out, strings.TrimSpace(s[at:m[0]]))
			at = m[0]
		}
	}
	return append(out, strings.TrimSpace(s[at:]))
}

// about matches a that which is no conjunction.
var about = lazyregexp.New(`(?i)\b(?:about|for|like|of|is|do|with) that $`)

// supposes matches a condition, which stays with what depends on it.
var supposes = lazyregexp.New(`(?i)\b(?:if|unless|in case|provided|otherwise|suppose|assuming)\b`)

// endsInConnective reports whether the last word of a text binds it to the next, such as "and".
func endsInConnective(s string) bool {
	if about.MatchString(s) {
		return false
	}
	last := s[strings.LastIndexByte(strings.TrimSpace(s), ' ')+1:]
	switch strings.TrimSpace(strings.ToLower(last)) {
	case "and", "or", "that", "so", "if", "because", "then", "when", "but", "of", "to", "the", "unless", "whether", "you", "can", "could",
		"would", "not", "never", "nobody":
		return true
	}
	return false
}

// At returns the state of the word at an offset of Text.
func (c Clause) At(offset int) State {
	at := c.wordAt(offset)
	s := State{Negated: c.negated(at), Reported: c.reported(at), Requested: c.Request, Corrected: c.retracted, Conditional: c.dependent}
	for _, p := range c.parts {
		if at < p.from || at >= p.to {
			continue
		}
		s.Condition, s.Conditional = p.condition, s.Conditional || p.conditional
		s.Asked = p.question && !c.Request
		s.Corrected = s.Corrected || p.corrected
		s.Uncertain, s.Past = p.uncertain, p.past
	}
	return s
}

// wordAt returns the index of the word at an offset.
func (c Clause) wordAt(offset int) int {
	at := 0
	for i, w := range c.words {
		if w.from <= offset {
			at = i
		}
	}
	return at
}

// allConditional reports whether a clause states nothing outside a condition.
func (c Clause) allConditional() bool {
	for _, p := range c.parts {
		if !p.conditional {
			return false
		}
	}
	return len(c.parts) > 0
}

// Negative reports whether a clause has a negation anywhere.
func (c Clause) Negative() bool { return len(c.negators) > 0 }

// Conditional reports whether a clause has a condition anywhere.
func (c Clause) Conditional() bool {
	for _, p := range c.parts {
		if p.conditional {
			return true
		}
	}
	return c.dependent
}

// Reserved reports whether a clause holds something that a change of its words could turn round: a negation, a condition, a question, a
// correction, a doubt, or somebody else's speech.
func (c Clause) Reserved() bool {
	if c.Negative() || c.Conditional() || c.Question || c.Correction || c.retracted || c.reported(len(c.words)) {
		return true
	}
	for _, p := range c.parts {
		if p.question || p.uncertain || p.corrected {
			return true
		}
	}
	return false
}

// Statement reports whether a clause is one statement with a subject and a finite verb at its beginning, and without reserve. Only such a
// clause may be put into the third person; every other one is quoted.
func (c Clause) Statement() bool {
	if c.Reserved() || len(c.words) > 32 || len(c.parts) == 0 || len(c.parts) > 1 && c.runs() {
		return false
	}
	at := 0
	for at < len(c.words)-1 && openings[c.at(at)] {
		at++
	}
	switch first := c.at(at); {
	case firstPerson[first]:
		return !determiners[c.at(at+1)] && !signs[c.at(at+1)]
	case subjects[first] || determiners[first] && first != "no":
		return c.verbWithin(at, 6)
	}
	return false
}

var firstPerson = set("i we i'm i've i'll we're we've we'll")

// verbWithin reports whether a finite verb follows a subject within some words, before a sign or a conjunction.
func (c Clause) verbWithin(at, reach int) bool {
	if finite[c.at(at)] && subjects[c.at(at)] {
		return true
	}
	for i := at + 1; i <= at+reach; i++ {
		w := c.at(i)
		if finite[w] {
			return true
		}
		if signs[w] || joint[w] || hard[w] || w == "" {
			return false
		}
	}
	return false
}

// Span returns the part of the text that belongs to the word at an offset: from the word to the next part with a clause of its own.
func (c Clause) Span(offset int) string {
	at := c.wordAt(offset)
	for i, p := range c.parts {
		if p.from > at && c.ownClause(i, false) && !p.corrected && !p.list {
			return c.Text[offset:c.words[p.from].from]
		}
	}
	return c.Text[offset:]
}

// NegativeAt reports whether the part of the clause at an offset has a negation.
func (c Clause) NegativeAt(offset int) bool {
	at := c.wordAt(offset)
	for _, p := range c.parts {
		for _, n := range c.negators {
			if at >= p.from && at < p.to && n.at >= p.from && n.at < p.to {
				return true
			}
		}
	}
	return false
}

// DeniesObject reports whether the action that begins at an offset is done to nobody or nothing: "I will call nobody".
func (c Clause) DeniesObject(offset int) bool {
	at := c.wordAt(offset)
	for _, n := range c.negators {
		if n.at <= at {
			continue
		}
		own := true
		for i := at + 1; i < n.at; i++ {
			w := c.at(i)
			own = own && !scopeEnds[w] && !signs[w] && w != "sure" && w != "that" && w != "it"
		}
		if own && c.at(n.at) != "not" && !strings.HasSuffix(c.at(n.at), "n't") {
			return true
		}
	}
	return false
}

// Aside reports whether a clause says what the call is not about: "this is not about the bill".
func (c Clause) Aside() bool { return notAbout.MatchString(c.Text) }

var notAbout = lazyregexp.New(`(?i)\b(?:not (?:calling )?(?:about|because of|to do with)|nothing to do with|(?:is not|isn't|wasn't|was not) (?:the|my|a) (?:problem|reason|point))\b`)
