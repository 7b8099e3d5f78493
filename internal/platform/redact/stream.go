package redact

import "slices"

// Stream removes numbers from passages as they are said. It holds a passage back while it may end in the middle of a number. A Stream is
// not safe for concurrent use.
type Stream struct {
	policy  Policy
	history []Passage
	waiting []bool // by index of history
}

// Limits of a Stream.
const (
	streamHistory = 40     // passages that give a meaning to the next one
	streamHoldMS  = 10_000 // how long after a passage it is held back at most
	openDigits    = 4      // digits at the end of a passage that may be the beginning of a longer number
)

// NewStream returns a Stream with a policy.
func (p Policy) NewStream() *Stream { return &Stream{policy: p} }

// Push adds the next passage, and returns the passages that are complete, without their numbers.
func (s *Stream) Push(p Passage) []Passage {
	if !s.policy.Enabled() {
		return []Passage{p}
	}
	at := len(s.history) // passages are recognised in about the order in which they were said
	for at > 0 && s.history[at-1].StartMS > p.StartMS {
		at--
	}
	s.history, s.waiting = slices.Insert(s.history, at, p), slices.Insert(s.waiting, at, true)
	out := s.release(p.EndMS - streamHoldMS)
	for len(s.history) > streamHistory && !s.waiting[0] {
		s.history, s.waiting = s.history[1:], s.waiting[1:]
	}
	return out
}

// Flush returns the passages that were held back.
func (s *Stream) Flush() []Passage {
	if !s.policy.Enabled() {
		return nil
	}
	const all = int(^uint(0) >> 1)
	return s.release(all)
}

// release returns the passages that are complete or ended before a time.
func (s *Stream) release(before int) (out []Passage) {
	clean, _ := s.policy.Apply(s.history)
	open := s.policy.open(s.history)
	for i, p := range s.history {
		if s.waiting[i] && (!open[i] || p.EndMS <= before) {
			s.waiting[i] = false
			out = append(out, clean[i])
		}
	}
	return out
}

// Unfinished returns passages without their numbers, and without the digits at their ends that may be the beginning of one. It is for
// views of a conversation that goes on.
func (p Policy) Unfinished(passages []Passage) ([]Passage, []Removal) {
	clean, removed := p.Apply(passages)
	if !p.Enabled() {
		return clean, removed
	}
	var out []Passage
	for i, open := range p.open(passages) {
		if !open {
			out = append(out, clean[i])
		}
	}
	return out, removed
}

// open returns for each passage whether it is a part of an unfinished number.
func (p Policy) open(passages []Passage) []bool {
	open := make([]bool, len(passages))
	r := newReading(passages, p.Language)
	r.search()
	for _, x := range r.runs {
		if !r.isLast(x) || digitsIn(x.chars) < openDigits || len(x.chars) > maxNumber {
			continue
		}
		for _, t := range x.tokens {
			if !r.taken[t] {
				open[r.tokens[t].passage] = true
			}
		}
	}
	return open
}

// digitsIn returns the number of digits in a text.
func digitsIn(text string) (n int) {
	for _, c := range text {
		if c >= '0' && c <= '9' {
			n++
		}
	}
	return n
}

// isLast reports whether a run reaches the end of what its speaker said.
func (r *reading) isLast(x run) bool {
	last := x.tokens[len(x.tokens)-1]
	speaker := r.passages[r.tokens[last].passage].Speaker
	for i := last + 1; i < len(r.tokens); i++ {
		if t := r.tokens[i]; r.passages[t.passage].Speaker == speaker && t.chars == "" && t.repeat == 0 && !t.filler {
			return false
		}
	}
	return true
}
