package transcript

import (
	"regexp"
	"strings"

	"soniq/internal/intelligence/language/clause"
)

// Urgency of a voicemail message.
const (
	urgencyLow    = "low"
	urgencyNormal = "normal"
	urgencyHigh   = "high"
)

// urgentPhrases and patientPhrases match phrases of urgent and not urgent messages. Patient phrases take precedence. A phrase that is
// denied counts for the other side: "it is not urgent".
var (
	urgentPhrases = regexp.MustCompile(`(?i)\b(?:urgent|urgently|emergency|as soon as possible|a s a p|asap|immediately|right away|at once|today|tonight|deadline|critical|help me|outage|` +
		`not working at all|(?:is|are) down|cannot wait|can't wait|can not wait)\b`)
	deniedUrgency  = regexp.MustCompile(`(?i)\b(?:urgent|urgently|emergency|rush|hurry|important|critical)\b`)
	patientPhrases = regexp.MustCompile(`(?i)\b(?:no rush|no hurry|whenever|when you have time|when you get a chance|at your convenience|take your time|just wanted to say)\b`)
)

// urgency returns the urgency of a message by its words; "" if there are none.
func urgency(text string) string {
	if !strings.ContainsFunc(text, func(c rune) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }) {
		return ""
	}
	urgent := false
	for _, c := range clause.Read(text) {
		if says(c, patientPhrases, false) || says(c, deniedUrgency, true) {
			return urgencyLow
		}
		urgent = urgent || says(c, urgentPhrases, false)
	}
	if urgent {
		return urgencyHigh
	}
	return urgencyNormal
}

// says reports whether a clause states words that match, or denies them.
func says(c clause.Clause, find *regexp.Regexp, denied bool) bool {
	for _, m := range find.FindAllStringIndex(c.Text, -1) {
		if s := c.At(m[0]); s.Negated == denied && !s.Condition && !s.Corrected && !s.Past {
			return true
		}
	}
	return false
}
