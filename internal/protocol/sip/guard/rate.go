package guard

import (
	"sync/atomic"
	"time"
)

// Rate limiter (GCRA).

// RateLimiter admits one event per Interval, with bursts of up to one second (GCRA). It needs no lock.
type RateLimiter struct {
	Interval time.Duration
	emptyAt  atomic.Int64 // when the bucket is empty
}

// Allow reports whether an event is within the rate, and counts it if so. now is on the caller's clock.
func (p *RateLimiter) Allow(now time.Duration) bool {
	for {
		due := p.emptyAt.Load()
		next := max(due, int64(now)) + int64(p.Interval)
		if next-int64(now) > int64(time.Second) {
			return false
		}
		if p.emptyAt.CompareAndSwap(due, next) {
			return true
		}
	}
}

// reset empties the limiter and sets its interval. Nothing else may use it meanwhile.
func (p *RateLimiter) reset(interval time.Duration) {
	p.Interval = interval
	p.emptyAt.Store(0)
}
