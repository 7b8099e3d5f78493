// Package timephrase reads English expressions of a time, such as "tomorrow at half past three" or "by the end of next week". It is the
// only grammar of times: action items quote what Find returns, and Resolve computes due_at from the quotation. An expression that the
// grammar does not read whole has no time.
package timephrase

import (
	"time"

	"soniq/internal/platform/clock/localday"
)

// Phrase is an expression of a time within a text.
type Phrase struct {
	From, To int // offsets in bytes
	Text     string
}

// Find returns the first expression in a text that says by when. Expressions of the past, of repetition and of a beginning ("last Monday",
// "every day", "after Thursday") do not count. ok is false if there is none, or if it is ambiguous.
func Find(text string) (p Phrase, ok bool) {
	r := newReader(text)
	for r.at < len(r.tokens) {
		if r.skipOther() {
			continue
		}
		start := r.at
		if _, ok := r.moment(); !ok {
			r.at = max(r.at, start+1)
			continue
		}
		from, to := r.tokens[start].from, r.tokens[r.at-1].to
		return Phrase{from, to, text[from:to]}, true
	}
	return Phrase{}, false
}

// Resolve returns the time that an expression means. from is the time at which it was said, in the zone of the speakers. A day means its
// end. ok is false if the text has no expression, or one that is ambiguous.
func Resolve(text string, from time.Time) (at time.Time, ok bool) {
	p, ok := Find(text)
	if !ok {
		return time.Time{}, false
	}
	m, ok := newReader(p.Text).moment()
	if !ok {
		return time.Time{}, false
	}
	return m.resolve(from)
}

// Only reports whether a text consists of an expression of a time alone, as the correction of an earlier one does: "at four". A bare hour
// counts.
func Only(text string) bool {
	r := newReader(text)
	r.bareHour = true
	_, ok := r.moment()
	r.skip(",", ".", "please", "then", "instead", "!")
	return ok && r.at == len(r.tokens)
}

// moment is an expression as it was read.
type moment struct {
	day    day
	clock  clock
	part   string // morning, afternoon, evening or night
	offset offset
}

func (m moment) empty() bool {
	return m.day.kind == "" && !m.clock.set && m.part == "" && m.offset.unit == ""
}

// corrected returns the expression after a correction: parts that the correction names replace the same parts.
func (m moment) corrected(by moment) moment {
	if by.offset.unit != "" {
		return by
	}
	m.offset = offset{}
	if by.day.kind != "" {
		m.day = by.day
	}
	if by.clock.set {
		m.clock = by.clock
	}
	if by.part != "" {
		m.part = by.part
	}
	return m
}

// resolve computes the time.
func (m moment) resolve(from time.Time) (time.Time, bool) {
	today := noon(from)
	if m.offset.unit != "" {
		return m.offset.after(from, today)
	}
	named := m.day.kind != ""
	date, ok := m.day.date(today)
	if !ok || !named && !m.clock.set && m.part == "" {
		return time.Time{}, false
	}
	if !m.clock.set {
		if !named { // "in the morning"
			date = today.AddDate(0, 0, 1)
		}
		return endOf(date, from.Location()), true
	}
	minutes, ok := m.clock.minutes(m.part)
	if !ok || minutes == 24*60 && named && m.day.kind != "today" {
		return time.Time{}, false // midnight of a day is its beginning or its end
	}
	at := dateOf(date).At(minutes, from.Location())
	switch passed := at.Before(from); {
	case passed && !named, m.part == "night" && minutes < 5*60 && m.day.kind == "today":
		at = dateOf(date).Add(1).At(minutes, from.Location())
	case passed && m.day.kind == "today" && m.clock.open(m.part) && minutes < 12*60:
		at = dateOf(date).At(12*60+minutes, from.Location())
	}
	return at, true
}

// noon returns the date of a time at noon in UTC. Days are counted there, because some zones change their clocks at midnight.
func noon(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, 12, 0, 0, 0, time.UTC)
}

func dateOf(noon time.Time) localday.Date {
	y, m, d := noon.Date()
	return localday.Date{Year: y, Month: m, Day: d}
}

// endOf returns the last second of a date in a zone.
func endOf(noon time.Time, zone *time.Location) time.Time {
	return dateOf(noon).Add(1).Start(zone).Add(-time.Second)
}
