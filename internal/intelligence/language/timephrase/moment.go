package timephrase

import (
	"slices"
	"time"
)

// otherTimes begin expressions that are no time limit: the past, repetition, a beginning, a subject.
var otherTimes = []string{"the last", "last", "yesterday", "every", "each", "previous", "past", "following", "after", "since", "from",
	"except", "not until", "not before", "not till", "not after", "to", "of", "about", "ago", "day before", "day after", "days before",
	"starting", "as of", "than"}

// skipOther skips an expression of a time that is no time limit.
func (r *reader) skipOther() bool {
	return r.try(func() bool {
		if r.peek(0) == "day" && r.peek(1) == "after" && r.peek(2) == "tomorrow" {
			return false
		}
		if r.peek(0) == "not" {
			at := r.at
			_, contrast := r.contrast()
			r.at = at + 1
			if contrast {
				return false
			}
		} else if r.any(otherTimes...) == "" {
			return false
		}
		m, ok := r.components(true)
		return ok && !m.empty()
	})
}

// moment reads an expression with its corrections. It returns false, beyond what it read, if the expression is ambiguous.
func (r *reader) moment() (m moment, ok bool) {
	start := r.at
	if m, ok = r.contrast(); !ok {
		r.at = start
		if m, ok = r.components(r.bareHour); !ok {
			r.at = start
			return m, false
		}
	}
	for {
		by, ok := r.correction()
		if !ok {
			break
		}
		m = m.corrected(by)
	}
	return m, r.complete(&m)
}

// contrast reads "not on Monday but on Tuesday".
func (r *reader) contrast() (m moment, ok bool) {
	ok = r.try(func() bool {
		if !r.words("not") {
			return false
		}
		if first, ok := r.components(true); !ok || first.empty() {
			return false
		}
		comma := r.words(",")
		if !r.words("but") && !comma {
			return false
		}
		m, ok = r.components(true)
		return ok
	})
	return m, ok
}

// correctionMarks introduce the correction of what was said before them.
var correctionMarks = []string{"no wait", "no sorry", "no ,", "no", "sorry ,", "sorry", "i mean ,", "i mean", "i meant", "actually",
	"or rather", "rather", "make that", "make it", "scratch that ,", "scratch that", "correction ,", "correction", "wait ,", "wait", "oh ,",
	"oh"}

// correction reads a correction: ", no, four".
func (r *reader) correction() (m moment, ok bool) {
	ok = r.try(func() bool {
		r.skip(",", ".", "?")
		if r.peek(0) == "no" && slices.Contains([]string{"later", "sooner", "earlier", "more"}, r.peek(1)) {
			return false
		}
		marked := false
		for r.any(correctionMarks...) != "" {
			marked = true
			r.skip(",", ".")
		}
		if !marked {
			return false
		}
		m, ok = r.components(true)
		return ok
	})
	return m, ok
}

// complete reads what follows an expression and reports whether the expression is all that was said about the time.
func (r *reader) complete(m *moment) bool {
	r.skip("at the latest", "latest", "sharp", "or so", "or earlier", "or sooner", "if possible")
	if m.clock.set && r.otherZone() {
		return false
	}
	at := r.at
	if r.any("or", "and", "to", "through", "till", "until") != "" {
		if r.rangeEnd(m, r.peek(-1)) {
			return true
		}
		joint := r.peek(-1)
		if second, ok := r.components(true); ok && !second.empty() && !r.verbFollows() && (joint != "and" || r.at == len(r.tokens)) {
			return false // "tomorrow or Thursday"
		}
		r.at = at
		return true
	}
	return r.any("after next", "at the earliest", "after that", "before last", "onwards") == ""
}

// rangeEnd reads the later end of a range of clock times: "at two or three", "from two to four".
func (r *reader) rangeEnd(m *moment, joint string) bool {
	return r.try(func() bool {
		if !m.clock.set || joint == "and" && !m.clock.ranged {
			return false
		}
		r.any("at")
		last, ok := r.clock(true)
		if !ok {
			return false
		}
		if !last.told() && m.clock.told() {
			return false
		}
		m.clock = last
		if m.part == "" {
			m.part = r.clockPart()
		}
		return joint != "or"
	})
}

// verbFollows reports whether the next word begins a new clause: "today and tomorrow I will …" is not a choice.
func (r *reader) verbFollows() bool {
	return slices.Contains([]string{"i", "we", "you", "he", "she", "they", "it", "i'll", "we'll", "is", "are", "was", "will"}, r.peek(0))
}

// otherZone reads a time zone that is not the speakers' own.
func (r *reader) otherZone() bool {
	if r.any("our time", "local time", "my time") != "" {
		return false
	}
	return r.any("pacific", "eastern", "central", "mountain", "utc", "gmt", "est", "pst", "cst", "mst", "edt", "pdt", "cet", "bst",
		"zulu") != "" ||
		r.peek(1) == "time" && r.peek(0) != "this" && r.peek(0) != "that" && r.peek(0) != "next" && r.peek(0) != "last"
}

// components reads the parts of an expression in any order, each once. bare allows an hour without a preposition.
func (r *reader) components(bare bool) (m moment, ok bool) {
	for first := true; ; first = false {
		at := r.at
		r.skip(",")
		if !r.component(&m, bare && first) {
			r.at = at
			return m, !m.empty()
		}
	}
}

// component reads one part of an expression into m.
func (r *reader) component(m *moment, bare bool) bool {
	return r.try(func() bool {
		r.skip("first thing", "early", "later", "sometime", "some time", "already", "definitely", "again")
		if m.empty() {
			if o, ok := r.offset(); ok {
				m.put(o)
				return true
			}
		}
		if m.offset.unit != "" {
			return false
		}
		if m.day.kind == "" {
			if d, part, ok := r.day(m.clock.set || m.part != ""); ok {
				m.day = d
				if part != "" {
					m.part = part
				}
				return true
			}
		}
		return !m.clock.set && r.clockInto(m, bare) || m.part == "" && r.partInto(m)
	})
}

// put sets a length of time. One of days or more names a day, which may have a clock time.
func (m *moment) put(o offset) {
	if o.unit == "minute" || o.unit == "hour" {
		m.offset = o
		return
	}
	m.day = named(func(today time.Time) (time.Time, bool) { return o.after(today, today) })
}

// clockInto reads a clock time with its part of the day.
func (r *reader) clockInto(m *moment, bare bool) bool {
	c, ok := r.clock(bare)
	if !ok {
		return false
	}
	m.clock = c
	if part := r.clockPart(); part != "" {
		m.part = part
	}
	return true
}

// clockPart reads the part of the day behind a clock time: "in the afternoon", "at night".
func (r *reader) clockPart() string {
	at := r.at
	if r.words("at night") {
		return "night"
	}
	if r.words("in the") {
		if part := r.daypart(); part != "" {
			return part
		}
	}
	r.at = at
	return ""
}

// partInto reads "in the morning" without a clock time, and "this afternoon" behind one.
func (r *reader) partInto(m *moment) bool {
	return r.try(func() bool {
		if !r.words("in the morning") || m.clock.set {
			return false
		}
		m.part = "morning"
		return true
	})
}
