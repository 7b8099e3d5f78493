package memory

import (
	"slices"
	"strings"
)

// cut is how transcripts are cut into passages, in words.
type cut struct {
	from    int // a passage of so many is long enough
	to      int // a passage is not longer, unless a short rest is added to it
	rest    int // a shorter rest is added to the passage before
	overlap int // so many of the end of a passage lead the next one too, as far as whole turns fit
}

// usual passages hold 120 to 200 words: long enough to mean something, short enough to mean one thing.
var usual = cut{from: 120, to: 200, rest: 40}

// Turn is one thing said on a call.
type Turn struct {
	Speaker string // "Caller" or "Agent"
	Text    string
	StartMS int
	EndMS   int
}

// passage is a stretch of a call to be remembered by itself.
type passage struct {
	kind           string
	text           string // what is shown: a line per turn, led by its speaker
	plain          string // what is embedded: the same without speakers
	startMS, endMS int
}

// windows cuts a transcript into passages.
func (c cut) windows(turns []Turn) []passage {
	var out []passage
	var open []Turn
	fresh := 0 // words of open that no window has yet
	for _, t := range c.split(turns) {
		n := len(strings.Fields(t.Text))
		if fresh >= c.rest && fresh+n > c.to || fresh >= c.from {
			out = append(out, window(open))
			open, fresh = c.again(open), 0
		}
		open, fresh = append(open, t), fresh+n
	}
	if fresh < c.rest && len(out) > 0 {
		return append(out[:len(out)-1], out[len(out)-1].with(window(lastOf(open, fresh))))
	}
	if len(open) > 0 {
		out = append(out, window(open))
	}
	return out
}

// again are the turns that lead the next window too.
func (c cut) again(turns []Turn) []Turn {
	at, size := len(turns), 0
	for ; at > 1; at-- {
		if size += len(strings.Fields(turns[at-1].Text)); size > c.overlap {
			break
		}
	}
	return slices.Clone(turns[at:])
}

// lastOf are the last turns with so many words.
func lastOf(turns []Turn, words int) []Turn {
	at := len(turns)
	for ; at > 0 && words > 0; at-- {
		words -= len(strings.Fields(turns[at-1].Text))
	}
	return turns[at:]
}

// split cuts turns that are longer than a window.
func (c cut) split(turns []Turn) []Turn {
	var out []Turn
	for _, t := range turns {
		for words := strings.Fields(t.Text); len(words) > 0; {
			n := min(len(words), c.to)
			part := t
			part.Text = strings.Join(words[:n], " ")
			out = append(out, part)
			words = words[n:]
		}
	}
	return out
}

// window makes one passage of turns.
func window(turns []Turn) passage {
	p := passage{kind: KindTranscript, startMS: turns[0].StartMS, endMS: turns[len(turns)-1].EndMS}
	var lines, plain []string
	for _, t := range turns {
		lines = append(lines, t.Speaker+": "+t.Text)
		plain = append(plain, t.Text)
	}
	p.text, p.plain = strings.Join(lines, "\n"), strings.Join(plain, "\n")
	return p
}

// with joins a passage with the one that follows it.
func (p passage) with(next passage) passage {
	p.text += "\n" + next.text
	p.plain += "\n" + next.plain
	p.endMS = next.endMS
	return p
}

// maxExcerpt is how much of a passage a result shows, in bytes.
const maxExcerpt = 600

// excerpt is the part of a passage that shares most with the query: whole lines where they fit.
func excerpt(text string, share func(line string) int) string {
	if len(text) <= maxExcerpt {
		return text
	}
	lines := strings.Split(text, "\n")
	best, at := -1, 0
	for i, l := range lines {
		if n := share(l); n > best {
			best, at = n, i
		}
	}
	from, to, size := at, at+1, len(lines[at])
	for grown := true; grown; {
		grown = false
		if to < len(lines) && size+1+len(lines[to]) <= maxExcerpt {
			size, to, grown = size+1+len(lines[to]), to+1, true
		}
		if from > 0 && size+1+len(lines[from-1]) <= maxExcerpt {
			size, from, grown = size+1+len(lines[from-1]), from-1, true
		}
	}
	return clip(strings.Join(lines[from:to], "\n"), maxExcerpt)
}

// clip shortens a text at a word.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	short := strings.ToValidUTF8(text[:limit-3], "")
	if at := strings.LastIndexByte(short, ' '); at > limit/2 {
		short = short[:at]
	}
	return short + "…"
}
