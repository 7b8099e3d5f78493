package memory

import (
	"slices"
	"strings"
)

// passageLimits are the limits, in words, for splitting transcripts into passages.
type passageLimits struct {
	minWords int // a passage with so many words is complete
	maxWords int // maximum of a passage, unless a short rest is appended
	minRest  int // a shorter rest is appended to the passage before
	overlap  int // so many words at the end of a passage are repeated in the next, as far as whole turns fit
}

// defaultLimits give passages of 120 to 200 words: long enough to have a meaning, short enough to have only one.
var defaultLimits = passageLimits{minWords: 120, maxWords: 200, minRest: 40}

// Turn is one utterance on a call.
type Turn struct {
	Speaker string // "Caller" or "Agent"
	Text    string
	StartMS int
	EndMS   int
}

// passage is a part of a call that is indexed on its own.
type passage struct {
	kind           string
	text           string // for display: a line per turn, with its speaker in front
	plain          string // for embedding: the same without speakers
	startMS, endMS int
}

// splitTranscript splits a transcript into passages.
func (c passageLimits) splitTranscript(turns []Turn) []passage {
	var out []passage
	var open []Turn
	fresh := 0 // words of open that are in no passage yet
	for _, t := range c.splitLongTurns(turns) {
		n := len(strings.Fields(t.Text))
		if fresh >= c.minRest && fresh+n > c.maxWords || fresh >= c.minWords {
			out = append(out, passageOf(open))
			open, fresh = c.overlapTurns(open), 0
		}
		open, fresh = append(open, t), fresh+n
	}
	if fresh < c.minRest && len(out) > 0 {
		return append(out[:len(out)-1], out[len(out)-1].joinedWith(passageOf(lastTurns(open, fresh))))
	}
	if len(open) > 0 {
		out = append(out, passageOf(open))
	}
	return out
}

// overlapTurns returns the turns that are repeated in the next passage.
func (c passageLimits) overlapTurns(turns []Turn) []Turn {
	at, size := len(turns), 0
	for ; at > 1; at-- {
		if size += len(strings.Fields(turns[at-1].Text)); size > c.overlap {
			break
		}
	}
	return slices.Clone(turns[at:])
}

// lastTurns returns the last turns with so many words.
func lastTurns(turns []Turn, words int) []Turn {
	at := len(turns)
	for ; at > 0 && words > 0; at-- {
		words -= len(strings.Fields(turns[at-1].Text))
	}
	return turns[at:]
}

// splitLongTurns splits turns that are longer than a passage.
func (c passageLimits) splitLongTurns(turns []Turn) []Turn {
	var out []Turn
	for _, t := range turns {
		for words := strings.Fields(t.Text); len(words) > 0; {
			n := min(len(words), c.maxWords)
			part := t
			part.Text = strings.Join(words[:n], " ")
			out = append(out, part)
			words = words[n:]
		}
	}
	return out
}

// passageOf returns turns as one passage.
func passageOf(turns []Turn) passage {
	p := passage{kind: KindTranscript, startMS: turns[0].StartMS, endMS: turns[len(turns)-1].EndMS}
	var lines, plain []string
	for _, t := range turns {
		lines = append(lines, t.Speaker+": "+t.Text)
		plain = append(plain, t.Text)
	}
	p.text, p.plain = strings.Join(lines, "\n"), strings.Join(plain, "\n")
	return p
}

// joinedWith appends the passage that follows.
func (p passage) joinedWith(next passage) passage {
	p.text += "\n" + next.text
	p.plain += "\n" + next.plain
	p.endMS = next.endMS
	return p
}

// maxExcerpt limits the part of a passage in a result, in bytes.
const maxExcerpt = 600

// excerpt returns the part of a passage around the line with the highest share, in whole lines if they fit.
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
	return truncate(strings.Join(lines[from:to], "\n"), maxExcerpt)
}

// truncate shortens a text to a limit in bytes, at a word.
func truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	short := strings.ToValidUTF8(text[:limit-3], "")
	if at := strings.LastIndexByte(short, ' '); at > limit/2 {
		short = short[:at]
	}
	return short + "…"
}
