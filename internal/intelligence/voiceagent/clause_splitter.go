package voiceagent

import (
	"strings"
	"unicode/utf8"
)

// clauseSplitter splits streamed text into parts that can be synthesised.
type clauseSplitter struct {
	rest      string
	hasOutput bool // a part was returned
}

// Minimum of words per part: the first part may be short, so that the caller hears something soon.
const (
	firstWords = 3
	laterWords = 6
	maxRunes   = 220 // a part without punctuation is split at a space
)

// add appends a piece of text, and returns the parts that are complete with it.
func (c *clauseSplitter) add(text string) (parts []string) {
	c.rest += text
	for {
		n := c.nextLength()
		if n == 0 {
			return parts
		}
		part := strings.TrimSpace(c.rest[:n])
		c.rest = c.rest[n:]
		if part != "" {
			parts, c.hasOutput = append(parts, part), true
		}
	}
}

// end returns the rest of the text.
func (c *clauseSplitter) end() string {
	rest := strings.TrimSpace(c.rest)
	c.rest = ""
	return rest
}

// nextLength returns the length of the next part in bytes; 0 if it is not complete.
func (c *clauseSplitter) nextLength() int {
	for i, r := range c.rest {
		end := i + utf8.RuneLen(r)
		next, _ := utf8.DecodeRuneInString(c.rest[end:])
		switch {
		case end >= len(c.rest): // the next character decides whether a mark ends a clause: 3.50, example.com
			return 0
		case inLink(c.rest[:end]) && utf8.RuneCountInString(c.rest[:end]) < maxRunes:
		case strings.ContainsRune("。！？", r), strings.ContainsRune(".!?", r) && next == ' ', r == '\n':
			return end
		case strings.ContainsRune(",;:", r) && next == ' ' && c.isLongEnough(c.rest[:end]):
			return end
		case next == ' ' && utf8.RuneCountInString(c.rest[:end]) >= maxRunes:
			return end
		}
	}
	return 0
}

func (c *clauseSplitter) isLongEnough(text string) bool {
	least := laterWords
	if !c.hasOutput {
		least = firstWords
	}
	return len(strings.Fields(text)) >= least
}
