package nlp

import (
	"fmt"
	"strings"

	"soniq/internal/intelligence/transcript"
)

// A note is extractive. Each of its lines is a speaker, words that were said, and their time. The person changes ("I" to "they") only in a
// clause that is one statement without reserve; every other clause is quoted as it was said.

// quoted returns a clause as a line of a note, in the words used.
func (c line) quoted() string {
	text := strings.TrimRight(strings.TrimSpace(c.Text), ",;: ")
	if strings.Contains(text, `"`) {
		text = strings.ReplaceAll(text, `"`, "'")
	}
	verb := ": "
	if c.Question && !c.Request {
		verb = " asked: "
	}
	return c.speakerName() + verb + `"` + text + `"` + c.clock()
}

// told returns a clause as a line of a note: in the third person if that is permitted and it is a plain statement, otherwise quoted.
func (c line) told(permits func(rule string) bool) string {
	text := c.coreText()
	if !permits("third_person") || c.speaker != transcript.Caller && c.speaker != transcript.Agent || !c.Statement() ||
		!personChanges(text, c.speaker) {
		return c.quoted()
	}
	verb := " said that "
	if c.speaker == transcript.Caller {
		verb = " reported that "
	}
	return c.speakerName() + verb + thirdPerson(text, c.speaker) + c.clock() + "."
}

// clock returns the time of a line in the call, such as " (1:05)"; it is empty if the times of the turns are not known.
func (c line) clock() string {
	if !c.timed {
		return ""
	}
	return fmt.Sprintf(" (%d:%02d)", c.startMS/60000, c.startMS/1000%60)
}

// reasonText returns the reason as lines.
func reasonText(reason []line, permits func(rule string) bool) string {
	var parts []string
	for i, c := range reason {
		if i > 0 && c.Question {
			continue
		}
		parts = append(parts, c.told(permits))
	}
	return strings.Join(parts, " ")
}
