package carrier

import (
	"sync"
	"time"
)

// A Limit bounds calls of one organisation, or on one trunk. Zero means no limit.
type Limit struct {
	PerSecond     int
	Concurrent    int
	MinutesPerDay int // of calls that ended this day (UTC) or are running
}

// LimitOf is what an organisation's settings allow.
func (p Policy) LimitOf() Limit {
	return Limit{PerSecond: p.Outbound.CallsPerSecond, Concurrent: p.Outbound.ConcurrentCalls, MinutesPerDay: p.Outbound.MinutesPerDay}
}

// LimitOf is what a trunk can carry.
func (t Trunk) LimitOf() Limit { return Limit{PerSecond: t.CallsPerSecond, Concurrent: t.MaxChannels} }

// A Limiter counts calls by a key: an organisation's id, or a trunk's. What it counted is lost with the process.
// It is safe for concurrent use.
type Limiter struct {
	now func() time.Time
	mu  sync.Mutex // guards counts and what they point to
	of  map[string]*count
}

type count struct {
	tokens  float64 // calls that may begin now
	filled  time.Time
	running int
	begun   int64 // sum of the times at which the running calls began, in ms since 1970
	day     int64
	used    time.Duration // by finished calls of the day
}

// NewLimiter makes a limiter that counts nothing yet.
func NewLimiter(now func() time.Time) *Limiter { return &Limiter{now: now, of: map[string]*count{}} }

// Begin counts a call, unless a limit forbids it. The call's end is told by calling end, once or more often.
func (l *Limiter) Begin(key string, limit Limit) (end func(), r Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	c := l.count(key, limit, now)
	if r := c.refusal(limit, now); r != Allowed {
		return func() {}, r
	}
	if limit.PerSecond > 0 {
		c.tokens--
	}
	return l.begin(c, now), Allowed
}

// Force counts a call that no limit applies to: an emergency call.
func (l *Limiter) Force(key string) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	return l.begin(l.count(key, Limit{}, now), now)
}

// Running is the number of calls in progress.
func (l *Limiter) Running(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.of[key]; c != nil {
		return c.running
	}
	return 0
}

// Used adds talk time of the day that an earlier run of the process counted.
func (l *Limiter) Used(key string, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count(key, Limit{}, l.now()).used += d
}

func (l *Limiter) count(key string, limit Limit, now time.Time) *count {
	c := l.of[key]
	if c == nil {
		c = &count{}
		l.of[key] = c
	}
	if today := day(now); today != c.day {
		c.day, c.used = today, 0
	}
	if full := float64(limit.PerSecond); full > 0 {
		c.tokens = min(c.tokens+now.Sub(c.filled).Seconds()*full, full)
		c.filled = now
	}
	return c
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

// spent is the time of the day's finished calls and of those still running.
func (c *count) spent(now time.Time) time.Duration {
	return c.used + time.Duration(int64(c.running)*now.UnixMilli()-c.begun)*time.Millisecond
}

func (l *Limiter) begin(c *count, now time.Time) (end func()) {
	c.running++
	c.begun += now.UnixMilli()
	var once sync.Once
	return func() { once.Do(func() { l.end(c, now) }) }
}

func (l *Limiter) end(c *count, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	c.running--
	c.begun -= began.UnixMilli()
	if today := day(now); today != c.day {
		c.day, c.used = today, 0
	}
	c.used += now.Sub(began)
}

// day counts days in UTC.
func day(t time.Time) int64 { return t.Unix() / 86_400 }
