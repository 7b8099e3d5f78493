package trunk

import (
	"sync"
	"time"

	"soniq/internal/platform/clock/localday"
)

// Limit bounds the calls of one organisation, to one number, or on one trunk. Zero fields mean no limit.
type Limit struct {
	PerSecond     int
	Concurrent    int
	MinutesPerDay int            // of calls that ended today or are running
	Zone          *time.Location // time zone of the day; nil: UTC
}

// CallLimit returns the limit that the settings of an organisation set.
func (p Policy) CallLimit() Limit {
	return Limit{PerSecond: p.Outbound.CallsPerSecond, Concurrent: p.Outbound.ConcurrentCalls, MinutesPerDay: p.Outbound.MinutesPerDay}
}

// ChannelLimit returns the limit of a trunk.
func (t Trunk) ChannelLimit() Limit {
	return Limit{PerSecond: t.CallsPerSecond, Concurrent: t.MaxChannels}
}

// Claim asks for a place under a limit.
type Claim struct {
	Key     string // id of an organisation or of a trunk, or organisation and destination number
	Limit   Limit
	Preempt func() // ends the call if an emergency call needs its place; nil: the call keeps its place
}

// Limiter counts calls by key. It is safe for concurrent use. Its counts are in memory only; after a restart AddUsed
// and Resume restore them.
type Limiter struct {
	now      func() time.Time
	mu       sync.Mutex // guards the fields below
	counters map[string]*callCounter
	sweepAt  int // number of counters from which sweep runs
}

type callCounter struct {
	tokens        float64 // calls that may begin now
	refilledAt    time.Time
	running       int
	startSum      int64 // sum of the start times of the running calls, in ms since 1970
	lastUsed      time.Time
	countsMinutes bool // minutes are counted; false for trunks and destinations
	zone          *time.Location
	day           localday.Date
	used          time.Duration // time of today's finished calls
	preempts      map[*callSlot]func()
}

// callSlot is one call in one counter.
type callSlot struct {
	counter *callCounter
	began   time.Time
}

// NewLimiter returns a limiter with all counts at zero.
func NewLimiter(now func() time.Time) *Limiter {
	return &Limiter{now: now, counters: map[string]*callCounter{}, sweepAt: minSweepSize}
}

// Begin counts a call, unless the limit forbids it. The caller must call end when the call ends; further calls of end
// have no effect.
func (l *Limiter) Begin(key string, limit Limit) (end func(), r Reason) {
	end, _, r = l.BeginAll(Claim{Key: key, Limit: limit})
	return end, r
}

// BeginAll counts a call under several limits. If one forbids it, the call is counted under none, and at is the index
// of that claim.
func (l *Limiter) BeginAll(claims ...Claim) (end func(), at int, r Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	counts := make([]*callCounter, len(claims))
	for i, c := range claims {
		counts[i] = l.counter(c.Key, c.Limit, now)
		if r := counts[i].refusal(c.Limit, now); r != Allowed {
			return func() {}, i, r
		}
	}
	seats := make([]*callSlot, len(claims))
	for i, c := range claims {
		if c.Limit.PerSecond > 0 {
			counts[i].tokens--
		}
		seats[i] = counts[i].begin(now, c.Preempt)
	}
	return l.endFunc(seats), 0, Allowed
}

// check reports whether BeginAll would count a call now. It counts nothing.
func (l *Limiter) check(claims ...Claim) (at int, r Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for i, c := range claims {
		if l.counters[c.Key] == nil {
			continue
		}
		if r := l.counter(c.Key, c.Limit, now).refusal(c.Limit, now); r != Allowed {
			return i, r
		}
	}
	return 0, Allowed
}

// BeginUnlimited counts a call to which no limit applies: an emergency call. If the key then has more calls than its
// limit, the newest call with a preempt function is ended. That function runs in this goroutine, without the lock.
func (l *Limiter) BeginUnlimited(key string, limit Limit) (end func()) {
	l.mu.Lock()
	now := l.now()
	c := l.counter(key, limit, now)
	p := c.begin(now, nil)
	var cut func()
	if limit.Concurrent > 0 && c.running > limit.Concurrent {
		cut = c.takeNewestPreempt()
	}
	l.mu.Unlock()
	if cut != nil {
		cut()
	}
	return l.endFunc([]*callSlot{p})
}

// Resume counts a call that began before the process did. No limit applies.
func (l *Limiter) Resume(key string, began time.Time, cut func()) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endFunc([]*callSlot{l.counter(key, Limit{}, l.now()).begin(began, cut)})
}

// PreemptAll ends every call that has a preempt function, and returns their number.
func (l *Limiter) PreemptAll() int {
	var all []func()
	l.mu.Lock()
	for _, c := range l.counters {
		for cut := c.takeNewestPreempt(); cut != nil; cut = c.takeNewestPreempt() {
			all = append(all, cut)
		}
	}
	l.mu.Unlock()
	for _, cut := range all {
		cut()
	}
	return len(all)
}

// Running returns the number of calls in progress for a key.
func (l *Limiter) Running(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.counters[key]; c != nil {
		return c.running
	}
	return 0
}

// KeyCount returns the number of keys in memory.
func (l *Limiter) KeyCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.counters)
}

// AddUsed adds call time of today that an earlier process counted.
func (l *Limiter) AddUsed(key string, limit Limit, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counter(key, limit, l.now()).used += d
}

func (l *Limiter) counter(key string, limit Limit, now time.Time) *callCounter {
	c := l.counters[key]
	if c == nil {
		l.sweep(now)
		c = &callCounter{}
		l.counters[key] = c
	}
	if limit.Zone != nil {
		c.zone = limit.Zone
	}
	c.countsMinutes = c.countsMinutes || limit.Zone != nil || limit.MinutesPerDay > 0
	c.lastUsed = now
	c.rollDay(now)
	if full := float64(limit.PerSecond); full > 0 {
		c.tokens = min(c.tokens+now.Sub(c.refilledAt).Seconds()*full, full)
		c.refilledAt = now
	}
	return c
}

const (
	minSweepSize    = 4096
	idleBeforeSweep = 2 * time.Second // an idle counter is full again after this time, so that removing it has no effect
)

// sweep removes idle counters once there are many. Without it, the destinations would fill the memory.
func (l *Limiter) sweep(now time.Time) {
	if len(l.counters) < l.sweepAt {
		return
	}
	for key, c := range l.counters {
		if c.rollDay(now); c.running == 0 && c.used == 0 && now.Sub(c.lastUsed) > idleBeforeSweep {
			delete(l.counters, key)
		}
	}
	l.sweepAt = max(minSweepSize, 2*len(l.counters))
}

func (c *callCounter) refusal(limit Limit, now time.Time) Reason {
	switch {
	case limit.Concurrent > 0 && c.running >= limit.Concurrent:
		return ConcurrentCallsExceeded
	case limit.MinutesPerDay > 0 && c.timeUsed(now) >= time.Duration(limit.MinutesPerDay)*time.Minute:
		return DailyMinutesExceeded
	case limit.PerSecond > 0 && c.tokens < 1:
		return CallsPerSecondExceeded
	}
	return Allowed
}

// timeUsed returns the time of today's finished calls and of the running ones.
func (c *callCounter) timeUsed(now time.Time) time.Duration {
	return c.used + time.Duration(int64(c.running)*now.UnixMilli()-c.startSum)*time.Millisecond
}

func (c *callCounter) begin(began time.Time, cut func()) *callSlot {
	p := &callSlot{counter: c, began: began}
	c.running++
	c.startSum += began.UnixMilli()
	if cut != nil {
		if c.preempts == nil {
			c.preempts = map[*callSlot]func(){}
		}
		c.preempts[p] = cut
	}
	return p
}

// takeNewestPreempt removes and returns the preempt function of the call that began last; nil if no call has one.
func (c *callCounter) takeNewestPreempt() (cut func()) {
	var last *callSlot
	for p := range c.preempts {
		if last == nil || p.began.After(last.began) {
			last = p
		}
	}
	cut = c.preempts[last]
	delete(c.preempts, last)
	return cut
}

func (l *Limiter) endFunc(seats []*callSlot) (end func()) {
	var once sync.Once
	return func() {
		once.Do(func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			for _, p := range seats {
				p.counter.end(p, l.now())
			}
		})
	}
}

func (c *callCounter) end(p *callSlot, now time.Time) {
	c.running--
	c.startSum -= p.began.UnixMilli()
	delete(c.preempts, p)
	c.rollDay(now)
	if d := now.Sub(p.began); d > 0 && c.countsMinutes {
		c.used += d
	}
}

// rollDay resets the used time if a new day has begun.
func (c *callCounter) rollDay(now time.Time) {
	if today := localday.DateOf(now, c.zone); today != c.day {
		c.day, c.used = today, 0
	}
}
