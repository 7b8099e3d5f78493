package access

import (
	"hash/maphash"
	"sync"
	"time"
)

// Limits are the rate limits of a credential; 0 is no limit.
type Limits struct {
	ReadsPerMinute, WritesPerMinute int
	Burst                           int // requests of both kinds per second
	SearchesPerSecond               int
}

// Policy allows a quota of requests in a window that starts with the first request. A quota of 0 means no limit.
type Policy struct {
	Name   string
	Quota  int
	Window time.Duration
}

// QuotaState is the remaining quota of a policy, and the time until its window ends.
type QuotaState struct {
	Policy
	Left     int
	Reset    time.Duration // greater than 0, at most the window
	Violated bool          // the request exceeded the quota
}

// Limiter counts requests per key on this node. It is sharded: callers contend only within a shard. It counts
// exactly, and keeps a limited number of counts. With more keys in one window, some counts are dropped and start
// again. It is safe for concurrent use.
type Limiter struct {
	now    func() time.Time
	seed   maphash.Seed
	shards [64]shard
}

// shard has the counts of some keys.
type shard struct {
	mu     sync.Mutex // guards counts
	counts map[countKey]count
}

type countKey struct{ who, policy string }

type count struct {
	n     int
	until time.Time
}

// maxCounts limits a shard: 64 shards keep 128,000 counts of about 100 bytes each.
const maxCounts = 2000

// NewLimiter returns a limiter without counts.
func NewLimiter(now func() time.Time) *Limiter {
	l := &Limiter{now: now, seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].counts = map[countKey]count{}
	}
	return l
}

// Take counts a request with a cost against all policies, or against none if one of them would be exceeded. It
// returns the states afterwards; ok is false if the request exceeded a policy.
func (l *Limiter) Take(who string, cost int, policies ...Policy) (all []QuotaState, ok bool) {
	p := &l.shards[maphash.String(l.seed, who)%uint64(len(l.shards))]
	now := l.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	ok = true
	all = make([]QuotaState, 0, len(policies))
	for _, policy := range policies {
		if policy.Quota <= 0 {
			continue
		}
		s := p.state(who, policy, now)
		s.Violated = s.Left < cost
		ok = ok && !s.Violated
		all = append(all, s)
	}
	if !ok || cost == 0 {
		return all, ok
	}
	for i := range all {
		all[i].Left -= cost
		p.store(countKey{who, all[i].Name}, count{all[i].Quota - all[i].Left, now.Add(all[i].Reset)}, now)
	}
	return all, true
}

func (p *shard) state(who string, policy Policy, now time.Time) QuotaState {
	c, known := p.counts[countKey{who, policy.Name}]
	if !known || !now.Before(c.until) {
		return QuotaState{Policy: policy, Left: policy.Quota, Reset: policy.Window}
	}
	return QuotaState{Policy: policy, Left: max(0, policy.Quota-c.n), Reset: c.until.Sub(now)}
}

func (p *shard) store(k countKey, c count, now time.Time) {
	if _, known := p.counts[k]; !known && len(p.counts) >= maxCounts {
		p.evict(now)
	}
	p.counts[k] = c
}

// evict drops expired counts. If a shard is still full, it drops one eighth of the counts.
func (p *shard) evict(now time.Time) {
	for k, c := range p.counts {
		if !now.Before(c.until) {
			delete(p.counts, k)
		}
	}
	drop := len(p.counts) - maxCounts*7/8
	for k := range p.counts {
		if drop <= 0 {
			return
		}
		delete(p.counts, k)
		drop--
	}
}
