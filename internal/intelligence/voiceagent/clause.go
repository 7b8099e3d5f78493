package voiceagent

import (
	"strings"
	"unicode/utf8"
)

// clauses cuts a text that comes piece by piece into parts that can be spoken.
type clauses struct {
	rest  string
	given bool // one was given
}

// A part is spoken once it is long enough: the first one soon, so that something is heard.
const (
	firstWords = 3
	laterWords = 6
	mostRunes  = 220 // a part without any mark is cut at a space
)

// add takes a piece, and returns the parts that are complete with it.
func (c *clauses) add(text string) (parts []string) {
	c.rest += text
	for {
		n := c.cut()
		if n == 0 {
			return parts
		}
		part := strings.TrimSpace(c.rest[:n])
		c.rest = c.rest[n:]
		if part != "" {
			parts, c.given = append(parts, part), true
		}
	}
}

// end is what is left.
func (c *clauses) end() string {
	rest := strings.TrimSpace(c.rest)
	c.rest = ""
	return rest
}

// cut is the length of the next part; 0: it is not complete.
func (c *clauses) cut() int {
	for i, r := range c.rest {
		end := i + utf8.RuneLen(r)
		next, _ := utf8.DecodeRuneInString(c.rest[end:])
		switch {
		case end >= len(c.rest): // what follows a mark tells whether it is one: 3.50, example.com
			return 0
		case strings.ContainsRune("。！？", r), strings.ContainsRune(".!?", r) && next == ' ', r == '\n':
			return end
		case strings.ContainsRune(",;:", r) && next == ' ' && c.enough(c.rest[:end]):
			return end
		case next == ' ' && utf8.RuneCountInString(c.rest[:end]) >= mostRunes:
			return end
		}
	}
	return 0
}

func (c *clauses) enough(text string) bool {
	least := laterWords
	if !c.given {
		least = firstWords
	}
	return len(strings.Fields(text)) >= least
}

// plain takes out of a text what is for eyes only.
func plain(text string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("*", "", "#", "", "`", "", "_", " ", "[", "", "]", "").Replace(text)), " ")
}
