package db

import (
	"sync"
	"time"
)

// rate counts events in intervals of a tenth of a second.
type rate struct {
	mu           sync.Mutex // guards the fields below
	began        time.Time
	before, here int // counts of the previous and the current interval
}

const tenth = 100 * time.Millisecond

// add counts an event and returns the approximate count of the last tenth of a second.
func (r *rate) add(now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch gone := now.Sub(r.began); {
	case gone >= 2*tenth:
		r.began, r.before, r.here = now, 0, 0
	case gone >= tenth:
		r.began, r.before, r.here = r.began.Add(tenth), r.here, 0
	}
	r.here++
	return max(r.before, r.here)
}
