package trunk

import (
	"sync"
	"time"
)

// Limit bounds the calls of one organisation, to one number, or on one trunk. Zero fields mean no limit.
type Limit struct {
	PerSecond     int
	Concurrent    int
	MinutesPerDay int            // of calls that ended today or are running
	Zone          *time.Location // time zone of the day; nil: UTC
}

// CallLimit returns the limit that the settings of an organisation set.
func (p Policy) LimitOf() Limit {
	return Limit{PerSecond: p.Outbound.CallsPerSecond, Concurrent: p.Outbound.ConcurrentCalls, MinutesPerDay: p.Outbound.MinutesPerDay}
}

// ChannelLimit returns the limit of a trunk.
func (t Trunk) LimitOf() Limit { return Limit{PerSecond: t.CallsPerSecond, Concurrent: t.MaxChannels} }

// Claim asks for a place under a limit.
type Claim struct {
	Key   string // id of an organisation or of a trunk, or organisation and destination number
	Limit Limit
	Cut   func() // ends the call if an emergency call needs its place; nil: the call keeps its place
}

// Limiter counts calls by key. It is safe for concurrent use. Its counts are in memory only; after a restart AddUsed
// and Resume restore them.
type Limiter struct {
	now  func() time.Time
	mu   sync.Mutex // guards the fields below
	of   map[string]*count
	tidy int // number of counters from which sweep runs
}

type count struct {
	tokens  float64 // calls that may begin now
	filled  time.Time
	running int
	begun   int64 // sum of the start times of the running calls, in ms since 1970
	seen    time.Time
	daily   bool // minutes are counted; false for trunks and destinations
	zone    *time.Location
	day     int64
	used    time.Duration // time of today's finished calls
	cuts    map[*seat]func()
}

// callSlot is one call in one counter.
type seat struct {
	in    *count
	began time.Time
}

// NewLimiter returns a limiter with all counts at zero.
func NewLimiter(now func() time.Time) *Limiter {
	return &Limiter{now: now, of: map[string]*count{}, tidy: tidyFrom}
}

// Begin counts a call, unless the limit forbids it. The caller must call end when the call ends; further calls of end
// have no effect.
func (l *Limiter) Begin(key string, limit Limit) (end func(), r Reason) {
	end, _, r = l.Take(Claim{Key: key, Limit: limit})
	return end, r
}

// BeginAll counts a call under several limits. If one forbids it, the call is counted under none, and at is the index
// of that claim.
func (l *Limiter) Take(claims ...Claim) (end func(), at int, r Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	counts := make([]*count, len(claims))
	for i, c := range claims {
		counts[i] = l.count(c.Key, c.Limit, now)
		if r := counts[i].refusal(c.Limit, now); r != Allowed {
			return func() {}, i, r
		}
	}
	seats := make([]*seat, len(claims))
	for i, c := range claims {
		if c.Limit.PerSecond > 0 {
			counts[i].tokens--
		}
		seats[i] = counts[i].begin(now, c.Cut)
	}
	return l.ender(seats), 0, Allowed
}

// BeginUnlimited counts a call to which no limit applies: an emergency call. If the key then has more calls than its
// limit, the newest call with a preempt function is ended. That function runs in this goroutine, without the lock.
func (l *Limiter) Force(key string, limit Limit) (end func()) {
	l.mu.Lock()
	now := l.now()
	c := l.count(key, limit, now)
	p := c.begin(now, nil)
	var cut func()
	if limit.Concurrent > 0 && c.running > limit.Concurrent {
		cut = c.sacrifice()
	}
	l.mu.Unlock()
	if cut != nil {
		cut()
	}
	return l.ender([]*seat{p})
}

// Resume counts a call that began before the process did. No limit applies.
func (l *Limiter) Resume(key string, began time.Time, cut func()) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ender([]*seat{l.count(key, Limit{}, l.now()).begin(began, cut)})
}

// PreemptAll ends every call that has a preempt function, and returns their number.
func (l *Limiter) CutAll() int {
	var all []func()
	l.mu.Lock()
	for _, c := range l.of {
		for cut := c.sacrifice(); cut != nil; cut = c.sacrifice() {
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
	if c := l.of[key]; c != nil {
		return c.running
	}
	return 0
}

// KeyCount returns the number of keys in memory.
func (l *Limiter) Kept() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.of)
}

// AddUsed adds call time of today that an earlier process counted.
func (l *Limiter) Used(key string, limit Limit, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count(key, limit, l.now()).used += d
}

func (l *Limiter) count(key string, limit Limit, now time.Time) *count {
	c := l.of[key]
	if c == nil {
		l.forget(now)
		c = &count{}
		l.of[key] = c
	}
	if limit.Zone != nil {
		c.zone = limit.Zone
	}
	c.daily = c.daily || limit.Zone != nil || limit.MinutesPerDay > 0
	c.seen = now
	c.turn(now)
	if full := float64(limit.PerSecond); full > 0 {
		c.tokens = min(c.tokens+now.Sub(c.filled).Seconds()*full, full)
		c.filled = now
	}
	return c
}

const (
	tidyFrom = 4096
	refilled = 2 * time.Second // an idle counter is full again after this time, so that removing it has no effect
)

// sweep removes idle counters once there are many. Without it, the destinations would fill the memory.
func (l *Limiter) forget(now time.Time) {
	if len(l.of) < l.tidy {
		return
	}
	for key, c := range l.of {
		if c.turn(now); c.running == 0 && c.used == 0 && now.Sub(c.seen) > refilled {
			delete(l.of, key)
		}
	}
	l.tidy = max(tidyFrom, 2*len(l.of))
}

func (c *count) refusal(limit Limit, now time.Time) Reason {
	switch {
	case limit.Concurrent > 0 && c.running >= limit.Concurrent:
		return TooMany
	case limit.MinutesPerDay > 0 && c.spent(now) >= time.Duration(limit.MinutesPerDay)*time.Minute:
		return MinutesUsed
	case limit.PerSecond > 0 && c.tokens < 1:
		return TooFast
	}
	return Allowed
}

// timeUsed returns the time of today's finished calls and of the running ones.
func (c *count) spent(now time.Time) time.Duration {
	return c.used + time.Duration(int64(c.running)*now.UnixMilli()-c.begun)*time.Millisecond
}

func (c *count) begin(began time.Time, cut func()) *seat {
	p := &seat{in: c, began: began}
	c.running++
	c.begun += began.UnixMilli()
	if cut != nil {
		if c.cuts == nil {
			c.cuts = map[*seat]func(){}
		}
		c.cuts[p] = cut
	}
	return p
}

// takeNewestPreempt removes and returns the preempt function of the call that began last; nil if no call has one.
func (c *count) sacrifice() (cut func()) {
	var last *seat
	for p := range c.cuts {
		if last == nil || p.began.After(last.began) {
			last = p
		}
	}
	cut = c.cuts[last]
	delete(c.cuts, last)
	return cut
}

func (l *Limiter) ender(seats []*seat) (end func()) {
	var once sync.Once
	return func() {
		once.Do(func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			for _, p := range seats {
				p.in.end(p, l.now())
			}
		})
	}
}

func (c *count) end(p *seat, now time.Time) {
	c.running--
	c.begun -= p.began.UnixMilli()
	delete(c.cuts, p)
	c.turn(now)
	if d := now.Sub(p.began); d > 0 && c.daily {
		c.used += d
	}
}

// rollDay resets the used time if a new day has begun.
func (c *count) turn(now time.Time) {
	if today := day(now, c.zone); today != c.day {
		c.day, c.used = today, 0
	}
}

// dayNumber returns a number that differs for each day in a time zone; nil is UTC.
func day(t time.Time, zone *time.Location) int64 {
	if zone != nil {
		t = t.In(zone)
	}
	y, m, d := t.Date()
	return int64(y)*400 + int64(m)*32 + int64(d)
}

// startOfDay returns the time at which the day of t began in a time zone; nil is UTC.
func midnight(t time.Time, zone *time.Location) time.Time {
	if zone == nil {
		zone = time.UTC
	}
	y, m, d := t.In(zone).Date()
	return time.Date(y, m, d, 0, 0, 0, 0, zone)
}
