package nlp

import (
	"regexp"
	"strings"

	"soniq/internal/intelligence/transcript"
)

// clause is the unit that the rules match: a sentence, or a part of one if recognised speech has no full stops.
type clause struct {
	speaker  transcript.Speaker
	turn     int // id of the turn
	order    int // number of turns before
	text     string
	question bool
}

var (
	sentenceEnd = regexp.MustCompile(`[.!?]+(?:\s+|$)`)
	// runOn matches words that begin a new clause in recognised speech, which has no full stops.
	runOn = regexp.MustCompile(`(?i)\b(?:i will|i'll|we will|we'll|i am going to|let me|please|thank you|i have (?:opened|sent|booked|ordered|created|moved|marked|issued)|go ahead|is there|can i|could you|would you|should i)\b`)
	// asks matches a question without its mark.
	asks           = regexp.MustCompile(`(?i)^(?:what|where|when|who|why|how|which|can (?:i|you|we)|could (?:i|you)|would you|do (?:i|you|we)|does|did (?:i|you)|is (?:it|that|there|this|anyone)|are (?:you|there|the)|was (?:it|there)|should i|will (?:it|you)|have you)\b`)
	greetingOnly   = regexp.MustCompile(`(?i)^(?:(?:hi|hello|hey|good (?:morning|afternoon|evening)|yes|no|yeah|okay|ok|right|sure|great|alright|of course|thanks?|thank you(?: (?:very|so) much)?|bye|goodbye|please|perfect|no problem|i understand|i see|wonderful|have a (?:nice|good) \w+)[,.! ]*)+$`)
	greetingPrefix = regexp.MustCompile(`(?i)^(?:(?:hi|hello|hey|good (?:morning|afternoon|evening)|yes|no|yeah|okay|ok|well|so|right|sure|um|uh|oh|ah|great|alright|absolutely|certainly|of course|no problem|(?:one|just a) moment|sir|madam|thanks?|thank you)\b[,.! ]*)+`)
)

// clausesOf splits turns into clauses.
func clausesOf(turns []transcript.Turn) []clause {
	var out []clause
	for order, t := range turns {
		for _, s := range sentences(t.Text) {
			for _, part := range splitRunOn(s) {
				c := clause{speaker: t.Speaker, turn: t.ID, order: order, text: part}
				c.question = strings.HasSuffix(part, "?") || asks.MatchString(part)
				out = append(out, c)
			}
		}
	}
	return out
}

// sentences splits at punctuation and keeps it.
func sentences(text string) []string {
	var out []string
	at := 0
	for _, m := range sentenceEnd.FindAllStringIndex(text, -1) {
		if m[1]-at > 3 || m[1] == len(text) { // "Mr. X" and initials stay whole
			out = append(out, strings.TrimSpace(text[at:m[1]]))
			at = m[1]
		}
	}
	if rest := strings.TrimSpace(text[at:]); rest != "" {
		out = append(out, rest)
	}
	return out
}

// splitRunOn splits a long sentence without commas before words that begin a new clause.
func splitRunOn(s string) []string {
	if wordCount(s) < 12 || strings.ContainsAny(s, ",;:") {
		return []string{s}
	}
	var out []string
	at := 0
	for _, m := range runOn.FindAllStringIndex(s, -1) {
		if wordCount(s[at:m[0]]) >= 4 && !endsInConnective(s[:m[0]]) {
			out = append(out, strings.TrimSpace(s[at:m[0]]))
			at = m[0]
		}
	}
	return append(out, strings.TrimSpace(s[at:]))
}

// endsInConnective reports whether the last word of a text binds it to the next, such as "and".
func endsInConnective(s string) bool {
	last := s[strings.LastIndexByte(strings.TrimSpace(s), ' ')+1:]
	switch strings.TrimSpace(strings.ToLower(last)) {
	case "and", "or", "that", "so", "if", "because", "then", "when", "but", "of", "to", "the":
		return true
	}
	return false
}

// core returns the text of a clause without greeting words before it and punctuation after it.
func (c clause) core() string {
	text := strings.TrimSpace(c.text)
	if rest := greetingPrefix.ReplaceAllString(text, ""); wordCount(rest) >= 3 {
		text = rest
	}
	return strings.TrimRight(text, ".!?,;: ")
}

var needCue = regexp.MustCompile(`(?i)\b(?:i (?:want|need|like|lost|got|get|ordered|bought|was|have|had|am calling|cannot|can't|just|would like|did not|didn't|still|forgot|think|left|received|paid|think)|i'd like|i'm calling|we (?:have|need|want|moved|lost|are)|my |our |how (?:do|can|much)|is not|isn't|does not|doesn't|won't|broken|broke|problem|wrong|late|missing|charged|stolen|somebody|someone|nobody|not work\w*|stopped|cancel\w*|refund|delivered|supposed|can you|do you|please|could you)\b`)

// reasonOf returns why the caller called: the first clauses of the caller that express a need, at most two.
func reasonOf(clauses []clause) []clause {
	var found []clause
	first := -1
	for _, c := range clauses {
		if c.speaker != transcript.Caller {
			if len(found) > 0 {
				break
			}
			continue
		}
		if greetingOnly.MatchString(c.text) || wordCount(c.core()) < 3 {
			continue
		}
		if first < 0 {
			first = c.order
		}
		if len(found) > 0 || needCue.MatchString(c.text) || c.order-first >= 2 {
			found = append(found, c)
		}
		if len(found) == 2 {
			break
		}
	}
	if len(found) == 0 {
		return firstOf(clauses)
	}
	return found
}

// firstOf returns the first clause of three words or more of the caller, or of the agent if the caller says nothing.
func firstOf(clauses []clause) []clause {
	for _, speaker := range []transcript.Speaker{transcript.Caller, transcript.Agent} {
		for _, c := range clauses {
			if c.speaker == speaker && wordCount(c.core()) >= 3 && !greetingOnly.MatchString(c.text) {
				return []clause{c}
			}
		}
	}
	return nil
}

// reported returns the reason in the third person.
func reported(reason []clause) string {
	var parts []string
	for i, c := range reason {
		said := thirdPerson(c.core(), c.speaker)
		switch {
		case c.question && i == 0:
			parts = append(parts, c.speakerName()+` asked "`+strings.TrimRight(c.core(), ".?! ")+`?"`)
		case c.question:
			continue
		case i == 0:
			parts = append(parts, c.speakerName()+" reported that "+said)
		default:
			parts = append(parts, said)
		}
	}
	return strings.Join(parts, "; ")
}

func (c clause) speakerName() string {
	if c.speaker == transcript.Caller {
		return "Caller"
	}
	return "Agent"
}
