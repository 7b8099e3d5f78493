// Package rate limits events per key with token buckets.
package rate

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Claim asks for one event of a key. A key has the same limit in all claims.
type Claim struct {
	Key       string
	PerSecond float64 // events in the long run
	Burst     int     // events at once, after a pause
}

// minSweepSize is the number of buckets from which full ones are removed. A full bucket equals a new one.
const minSweepSize = 10_000

// Limiter keeps a bucket for each key, in memory of this process. The zero value is ready for use. It is safe for
// concurrent use.
type Limiter struct {
	mu      sync.Mutex // guards the fields below
	buckets map[string]*rate.Limiter
	sweepAt int // number of buckets from which sweep runs
}

// Take counts an event under all claims, or under none if one of them is exhausted. Then ok is false, and refused is the
// index of that claim.
func (l *Limiter) Take(now time.Time, claims ...Claim) (refused int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	buckets := make([]*rate.Limiter, len(claims))
	for i, c := range claims {
		if buckets[i] = l.bucket(now, c); buckets[i].TokensAt(now) < 1 {
			return i, false
		}
	}
	for _, b := range buckets {
		b.AllowN(now, 1)
	}
	return 0, true
}

func (l *Limiter) bucket(now time.Time, c Claim) *rate.Limiter {
	b := l.buckets[c.Key]
	if b == nil {
		l.sweep(now)
		b = rate.NewLimiter(rate.Limit(c.PerSecond), c.Burst)
		l.buckets[c.Key] = b
	}
	return b
}

// sweep removes full buckets once there are many.
func (l *Limiter) sweep(now time.Time) {
	if l.buckets == nil {
		l.buckets, l.sweepAt = map[string]*rate.Limiter{}, minSweepSize
	}
	if len(l.buckets) < l.sweepAt {
		return
	}
	for key, b := range l.buckets {
		if b.TokensAt(now) >= float64(b.Burst()) {
			delete(l.buckets, key)
		}
	}
	l.sweepAt = max(minSweepSize, 2*len(l.buckets))
}

// KeyCount returns the number of buckets in memory.
func (l *Limiter) KeyCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.buckets)
}
