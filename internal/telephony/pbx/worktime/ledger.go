// Package worktime divides the talk time and the hold time of a call among the people who served it.
package worktime

import (
	"slices"
	"time"
)

// Kind is the use of time in a call.
type Kind int

// The kinds of time. None counts for no user: the call is not answered, or a script serves the caller.
const (
	None Kind = iota
	Talk
	Hold
)

// Seconds holds the whole seconds of one leg.
type Seconds struct{ Talk, Hold int }

// Ledger counts the time of legs. The zero value is ready for use. Its owner alone uses it, one goroutine at a time.
// The field names are stored as JSON, for calls that survive a restart.
type Ledger struct {
	Last    time.Time          // time up to which everything is counted
	Kind    Kind               // use of the time since Last
	Present []string           `json:",omitempty"` // legs among which the time since Last is divided
	Open    map[string]Time    `json:",omitempty"` // by leg id; those that Close was not called for
	Closed  Time               // time of the closed legs
	Given   Seconds            // sum of the seconds that Close returned
	Done    map[string]Seconds `json:",omitempty"` // by leg id; what Close returned
}

// Time is an exact talk time and hold time.
type Time struct{ Talk, Hold time.Duration }

// Advance counts the time since the last call of Advance by the use and the legs stated then. From now on time is used
// as kind says, and the given legs share it in equal parts. A time before the last one counts nothing.
func (l *Ledger) Advance(now time.Time, kind Kind, present []string) {
	if len(l.Present) > 0 && l.Kind != None {
		each := max(now.Sub(l.Last), 0) / time.Duration(len(l.Present))
		for _, id := range l.Present {
			t := l.Open[id]
			if l.Kind == Talk {
				t.Talk += each
			} else {
				t.Hold += each
			}
			l.Open[id] = t
		}
	}
	if now.After(l.Last) {
		l.Last = now
	}
	l.Kind, l.Present = kind, slices.Clone(present)
	for _, id := range present {
		if l.Open == nil {
			l.Open = map[string]Time{}
		}
		t := l.Open[id]
		l.Open[id] = t // a leg that is present for no time has served, too
	}
}

// Close returns the seconds of a leg that has left the call, again the same if it is called again. ok is false if the
// leg was never present. The seconds of all closed legs add up to their rounded time.
func (l *Ledger) Close(id string) (s Seconds, ok bool) {
	if s, ok = l.Done[id]; ok {
		return s, true
	}
	t, ok := l.Open[id]
	if !ok {
		return s, false
	}
	delete(l.Open, id)
	l.Closed.Talk += t.Talk
	l.Closed.Hold += t.Hold
	s = Seconds{whole(l.Closed.Talk) - l.Given.Talk, whole(l.Closed.Hold) - l.Given.Hold}
	l.Given.Talk += s.Talk
	l.Given.Hold += s.Hold
	if l.Done == nil {
		l.Done = map[string]Seconds{}
	}
	l.Done[id] = s
	return s, true
}

// Drop removes a leg that belongs to another call now. Its time counts for no user.
func (l *Ledger) Drop(id string) {
	delete(l.Open, id)
	l.Present = slices.DeleteFunc(l.Present, func(x string) bool { return x == id })
}

func whole(d time.Duration) int { return int(d.Round(time.Second) / time.Second) }
