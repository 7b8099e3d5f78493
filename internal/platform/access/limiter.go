package access

import (
	"hash/maphash"
	"sync"
	"time"
)

// Limits are how much one credential may ask for; 0 is no limit.
type Limits struct {
	ReadsPerMinute, WritesPerMinute int
	Burst                           int // requests of either kind within a second
	SearchesPerSecond               int
}

// A Policy allows a quota of requests within a window that begins with the first of them. A quota of 0 allows all.
type Policy struct {
	Name   string
	Quota  int
	Window time.Duration
}

// A Standing is what is left of a policy, and when it begins anew.
type Standing struct {
	Policy
	Left     int
	Reset    time.Duration // above 0, at most the window
	Violated bool          // the request did not fit
}

// A Limiter counts the requests of everybody, on this node alone. Nobody waits for others but those who fall into the same of
// its parts, for the time of a few additions. It is safe for concurrent use, counts exactly, and keeps a bounded number of
// counts: where there are more in one window, some begin anew.
type Limiter struct {
	now   func() time.Time
	seed  maphash.Seed
	parts [64]part
}

// part keeps the counts of some of the askers.
type part struct {
	mu     sync.Mutex // guards counts
	counts map[counted]count
}

type counted struct{ who, policy string }

type count struct {
	n     int
	until time.Time
}

// mostCounts bounds a part: 64 of them keep 128,000 counts, of about 100 bytes each.
const mostCounts = 2000

// NewLimiter makes a limiter without any counts.
func NewLimiter(now func() time.Time) *Limiter {
	l := &Limiter{now: now, seed: maphash.MakeSeed()}
	for i := range l.parts {
		l.parts[i].counts = map[counted]count{}
	}
	return l
}

// Take counts a request of a cost against all policies, or against none where it does not fit into one of them. It says how
// each stands afterwards; ok is false where the request did not fit.
func (l *Limiter) Take(who string, cost int, policies ...Policy) (all []Standing, ok bool) {
	p := &l.parts[maphash.String(l.seed, who)%uint64(len(l.parts))]
	now := l.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	ok = true
	all = make([]Standing, 0, len(policies))
	for _, policy := range policies {
		if policy.Quota <= 0 {
			continue
		}
		s := p.standing(who, policy, now)
		s.Violated = s.Left < cost
		ok = ok && !s.Violated
		all = append(all, s)
	}
	if !ok || cost == 0 {
		return all, ok
	}
	for i := range all {
		all[i].Left -= cost
		p.keep(counted{who, all[i].Name}, count{all[i].Quota - all[i].Left, now.Add(all[i].Reset)}, now)
	}
	return all, true
}

func (p *part) standing(who string, policy Policy, now time.Time) Standing {
	c, known := p.counts[counted{who, policy.Name}]
	if !known || !now.Before(c.until) {
		return Standing{Policy: policy, Left: policy.Quota, Reset: policy.Window}
	}
	return Standing{Policy: policy, Left: max(0, policy.Quota-c.n), Reset: c.until.Sub(now)}
}

func (p *part) keep(k counted, c count, now time.Time) {
	if _, known := p.counts[k]; !known && len(p.counts) >= mostCounts {
		p.forget(now)
	}
	p.counts[k] = c
}

// forget drops what is over; where nothing is, an eighth of what there is.
func (p *part) forget(now time.Time) {
	for k, c := range p.counts {
		if !now.Before(c.until) {
			delete(p.counts, k)
		}
	}
	drop := len(p.counts) - mostCounts*7/8
	for k := range p.counts {
		if drop <= 0 {
			return
		}
		delete(p.counts, k)
		drop--
	}
}
