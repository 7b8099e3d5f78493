package memory

import "strings"

// Windows of a transcript hold 120 to 200 words: long enough to mean something, short enough to mean one thing.
const (
	windowFrom = 120
	windowTo   = 200
	windowRest = 40 // a shorter rest is added to the window before
)

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
func windows(turns []Turn) []passage {
	var out []passage
	var open []Turn
	size := 0
	shut := func() {
		if len(open) > 0 {
			out = append(out, window(open))
		}
		open, size = nil, 0
	}
	for _, t := range split(turns) {
		n := len(strings.Fields(t.Text))
		if size >= windowRest && size+n > windowTo || size >= windowFrom {
			shut()
		}
		open, size = append(open, t), size+n
	}
	if size < windowRest && len(out) > 0 {
		out[len(out)-1] = out[len(out)-1].with(window(open))
		return out
	}
	shut()
	return out
}

// split cuts turns that are longer than a window.
func split(turns []Turn) []Turn {
	var out []Turn
	for _, t := range turns {
		for words := strings.Fields(t.Text); len(words) > 0; {
			n := min(len(words), windowTo)
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
