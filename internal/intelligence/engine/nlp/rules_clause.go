package nlp

import (
	"strings"

	"soniq/internal/intelligence/language/clause"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/platform/lazyregexp"
)

// line is a clause of a call with its speaker and time, the unit that the rules work on.
type line struct {
	clause.Clause
	speaker transcript.Speaker
	turn    int // id of the turn
	order   int // number of turns before
	startMS int
	timed   bool // startMS is known
}

var (
	greetingOnly   = lazyregexp.New(`(?i)^(?:(?:hi|hello|hey|good (?:morning|afternoon|evening)|yes|no|yeah|okay|ok|right|sure|great|alright|of course|thanks?|thank you(?: (?:very|so) much)?|bye|goodbye|please|perfect|no problem|i understand|i see|wonderful|have a (?:nice|good) \w+)[,.! ]*)+$`)
	greetingPrefix = lazyregexp.New(`(?i)^(?:(?:(?:hi|hello|hey|good (?:morning|afternoon|evening)|yes|yeah|okay|ok|well|so|right|sure|um|uh|oh|ah|great|alright|absolutely|certainly|of course|(?:one|just a) moment|sir|madam|thanks?|thank you)\b|no problem[,.!]|no[,.!])[,.! ]*)+`)
)

// linesOf returns the clauses of a call.
func linesOf(turns []transcript.Turn) []line {
	var out []line
	for order, t := range turns {
		for _, c := range clause.Read(t.Text) {
			out = append(out, line{c, t.Speaker, t.ID, order, t.StartMS, t.EndMS > 0})
		}
	}
	return out
}

// core returns the text of a clause without greeting words before it and punctuation after it, and the offset of its beginning. It keeps a
// no that is not an answer.
func (c line) core() (text string, at int) {
	at = len(c.Text) - len(strings.TrimLeft(c.Text, " "))
	text = c.Text[at:]
	if prefix := greetingPrefix.FindString(text); wordCount(text[len(prefix):]) >= 3 {
		at += len(prefix)
		text = text[len(prefix):]
	}
	return strings.TrimRight(text, ".!?,;: "), at
}

func (c line) coreText() string {
	text, _ := c.core()
	return text
}

var needCue = lazyregexp.New(`(?i)\b(?:i (?:want|need|like|lost|got|get|ordered|bought|was|have|had|am calling|cannot|can't|just|would like|did not|didn't|still|forgot|think|left|received|paid|think)|i'd like|i'm calling|we (?:have|need|want|moved|lost|are)|my |our |how (?:do|can|much)|is not|isn't|does not|doesn't|won't|broken|broke|problem|wrong|late|missing|charged|stolen|somebody|someone|nobody|not work\w*|stopped|cancel\w*|refund|delivered|supposed|can you|do you|please|could you)\b`)

// reasonOf returns why the caller called: the first clauses of the caller that express a need, at most three and forty words.
func reasonOf(lines []line) []line {
	var found []line
	first := -1
	for _, c := range lines {
		if c.speaker != transcript.Caller {
			if len(found) > 0 {
				break
			}
			continue
		}
		if greetingOnly.MatchString(c.Text) || wordCount(c.coreText()) < 3 || c.At(0).Corrected {
			continue
		}
		if first < 0 {
			first = c.order
		}
		if len(found) > 0 || c.Negative() || needCue.MatchString(c.Text) || c.order-first >= 2 {
			found = append(found, c)
		}
		if len(found) == 3 {
			break
		}
	}
	if len(found) == 0 {
		found = firstOf(lines)
	}
	for len(found) > 2 && wordCount(found[0].Text)+wordCount(found[1].Text)+wordCount(found[2].Text) > 40 {
		found = found[:2]
	}
	return found
}

// firstOf returns the first clauses of three words or more of the caller in one turn, or of another side if the caller says nothing.
func firstOf(lines []line) (found []line) {
	for _, speaker := range []transcript.Speaker{transcript.Caller, transcript.Agent, transcript.Other} {
		for _, c := range lines {
			if len(found) > 0 && c.turn != found[0].turn {
				return found
			}
			if c.speaker == speaker && wordCount(c.coreText()) >= 3 && !greetingOnly.MatchString(c.Text) {
				found = append(found, c)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

func (c line) speakerName() string {
	switch c.speaker {
	case transcript.Caller:
		return "Caller"
	case transcript.Agent:
		return "Agent"
	}
	return "Speaker"
}
