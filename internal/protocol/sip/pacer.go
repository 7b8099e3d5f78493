package sip

import (
	"sync/atomic"
	"time"
)

// A Pacer lets through one event every so often, with bursts of a second
// (GCRA). It needs no lock.
type Pacer struct {
	Every time.Duration
	due   atomic.Int64 // when the bucket would be empty
}

// Allow counts an event at a time on the caller's clock, unless there were too many.
func (p *Pacer) Allow(now time.Duration) bool {
	for {
		due := p.due.Load()
		next := max(due, int64(now)) + int64(p.Every)
		if next-int64(now) > int64(time.Second) {
			return false
		}
		if p.due.CompareAndSwap(due, next) {
			return true
		}
	}
}
