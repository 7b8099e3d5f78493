package db

import (
	"sync"
	"time"
)

// A rate counts what happens in tenths of a second.
type rate struct {
	mu           sync.Mutex // guards the fields below
	began        time.Time
	before, here int // in the tenth before, and in the one that began then
}

const tenth = 100 * time.Millisecond

// add counts one more, and returns how many there were in the last tenth of a second, about.
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
