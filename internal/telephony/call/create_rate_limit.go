package call

import (
	"sync"
	"time"

	"soniq/internal/platform/op"
)

// The rate limits of calls.create: 5 calls per second and organisation, 1 per second to the same destination.
const (
	callsPerOrg         = 5
	callsPerDestination = 1
	limiterWindow       = time.Second
	maxLimiterKeys      = 10_000 // keys kept; beyond it, keys older than the window are dropped
)

// createLimiter stores the times of the calls created in the last second.
type createLimiter struct {
	mu   sync.Mutex // guards last
	last map[string][]time.Time
}

// take counts one call, or returns rate_limited.
func (p *createLimiter) take(now time.Time, org, to string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[string][]time.Time{}
	}
	all, one := p.recent(now, org), p.recent(now, org+" "+to)
	switch {
	case len(all) >= callsPerOrg:
		return op.RateLimited("at most 5 calls a second", 1, "calls")
	case len(one) >= callsPerDestination:
		return op.RateLimited("at most 1 call a second to the same destination", 1, "calls_to_one_number")
	}
	p.last[org], p.last[org+" "+to] = append(all, now), append(one, now)
	p.prune(now)
	return nil
}

// recent returns the times of a key within the window.
func (p *createLimiter) recent(now time.Time, key string) []time.Time {
	all := p.last[key]
	for len(all) > 0 && now.Sub(all[0]) >= limiterWindow {
		all = all[1:]
	}
	return all
}

func (p *createLimiter) prune(now time.Time) {
	if len(p.last) < maxLimiterKeys {
		return
	}
	for key := range p.last {
		if len(p.recent(now, key)) == 0 {
			delete(p.last, key)
		}
	}
}
