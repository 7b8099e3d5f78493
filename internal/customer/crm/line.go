package crm

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/db"
)

// When a system is left alone.
const (
	maxFailures   = 5 // in a row
	openTime      = 30 * time.Second
	maxAsking     = 16 // questions at once
	window        = 100
	defaultBudget = 600 // questions per minute
	degradedAt    = 20  // percent of errors
)

// A line is the way to a connected system: it keeps its budget and its moods, and survives changes of its name. It is safe for
// concurrent use.
type line struct {
	adapter   Adapter
	version   db.Time // of the connection it was made for
	timeout   time.Duration
	breaker   *gobreaker.CircuitBreaker[[]contact.Record]
	perMinute int
	now       func() time.Time

	mu     sync.Mutex // guards the rest
	asking int
	tokens float64
	filled time.Time
	quiet  time.Time // until then it wants to be left alone
	took   []time.Duration
	failed []bool
	last   error // of the last question; nil when it went well
}

// A paced adapter says how many questions its system takes per minute; 0 where it does not know.
type paced interface{ pace() int }

func newLine(a Adapter, c Connection, now func() time.Time) *line {
	l := &line{adapter: a, version: c.updatedAt, timeout: c.timeout(), perMinute: defaultBudget, now: now, filled: now()}
	if p, ok := a.(paced); ok && p.pace() > 0 {
		l.perMinute = p.pace()
	}
	l.tokens = l.burst()
	l.breaker = gobreaker.NewCircuitBreaker[[]contact.Record](gobreaker.Settings{Name: c.ID, Timeout: openTime,
		ReadyToTrip: func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= maxFailures },
		IsExcluded:  func(err error) bool { return errors.Is(err, context.Canceled) || left(err) }})
	return l
}

// left reports whether an error says that nobody was asked, or that the system is well but busy.
func left(err error) bool {
	var busy *Busy
	return errors.Is(err, contact.ErrRateLimited) || errors.Is(err, contact.ErrSkipped) || errors.As(err, &busy)
}

// burst is how many questions may come at once.
func (l *line) burst() float64 { return max(1, float64(l.perMinute)/10) }

// ask asks the system within its time, if it may be asked at all.
func (l *line) ask(ctx context.Context, q contact.Query) ([]contact.Record, error) {
	f, ok := l.adapter.(Finder)
	if !ok {
		return nil, contact.ErrSkipped
	}
	found, err := l.breaker.Execute(func() ([]contact.Record, error) {
		if !l.enter() {
			return nil, contact.ErrRateLimited
		}
		ctx, cancel := context.WithTimeout(ctx, l.timeout)
		defer cancel()
		began := time.Now()
		found, err := f.Lookup(ctx, q)
		if l.leave(time.Since(began), err); errors.As(err, new(*Busy)) {
			err = errors.Join(contact.ErrRateLimited, err)
		}
		return found, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		err = contact.ErrCircuitOpen
	}
	return found, err
}

// enter takes a token, and a place among those who ask.
func (l *line) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.tokens = min(l.burst(), l.tokens+now.Sub(l.filled).Minutes()*float64(l.perMinute))
	l.filled = now
	if l.asking >= maxAsking || l.tokens < 1 || now.Before(l.quiet) {
		return false
	}
	l.tokens--
	l.asking++
	return true
}

func (l *line) leave(took time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asking--
	var busy *Busy
	if errors.As(err, &busy) {
		l.quiet = l.now().Add(busy.After)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, contact.ErrSkipped) {
		return
	}
	l.last = err
	l.took, l.failed = append(l.took, took), append(l.failed, err != nil)
	if len(l.took) > window {
		l.took, l.failed = l.took[1:], l.failed[1:]
	}
}

// health is how the system did of late.
type health struct {
	p95, errors *int
	last        error
	open        bool
}

func (l *line) health() health {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := health{last: l.last, open: l.breaker.State() != gobreaker.StateClosed}
	if len(l.took) == 0 {
		return h
	}
	sorted := slices.Sorted(slices.Values(l.took))
	p95 := int((sorted[(len(sorted)*95-1)/100] + time.Millisecond - 1) / time.Millisecond)
	bad := 0
	for _, f := range l.failed {
		if f {
			bad++
		}
	}
	rate := bad * 100 / len(l.failed)
	h.p95, h.errors = &p95, &rate
	return h
}

// show puts the health of a line into the record of its connection.
func (h health) show(c *Connection) {
	c.LookupP95MS, c.ErrorRate = h.p95, h.errors
	if h.last != nil {
		text := words(h.last)
		c.LastError = &text
	}
	switch {
	case errors.Is(h.last, ErrAuth):
		c.Status = "auth_required"
	case h.open, h.errors != nil && *h.errors >= degradedAt:
		c.Status = "degraded"
	}
}

// words is an error as people are told of it.
func words(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case err == nil:
		return ""
	}
	text := err.Error()
	if len(text) > 300 {
		text = text[:300]
	}
	return text
}
