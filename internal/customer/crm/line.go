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

// Limits of lookups, and the circuit breaker.
const (
	maxFailures   = 5 // in a row
	openTime      = 30 * time.Second
	maxAsking     = 16 // concurrent lookups
	window        = 100
	defaultBudget = 600 // lookups per minute
	degradedAt    = 20  // percent of errors
)

// connectionClient sends lookups to one connected system. It enforces the rate limit, the circuit breaker and the
// limit of concurrent lookups, and measures their times. It is replaced when the connection changes. It is safe for
// concurrent use.
type line struct {
	adapter   Adapter
	version   db.Time // updated_at of the connection it was built from
	timeout   time.Duration
	breaker   *gobreaker.CircuitBreaker[[]contact.Record]
	perMinute int
	now       func() time.Time

	mu     sync.Mutex // guards the rest
	asking int
	tokens float64
	filled time.Time
	quiet  time.Time // no lookups before this time, because the system requested a pause
	took   []time.Duration
	failed []bool
	last   error // of the last lookup; nil if it succeeded
}

// rateLimited is an adapter that knows how many lookups its system accepts per minute; 0 means the default.
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

// isExcluded reports whether the breaker ignores an error: no request was sent, or the system is healthy but busy.
func left(err error) bool {
	var busy *Busy
	return errors.Is(err, contact.ErrRateLimited) || errors.Is(err, contact.ErrSkipped) || errors.As(err, &busy)
}

// burst returns how many lookups may start at once: a tenth of a minute's.
func (l *line) burst() float64 { return max(1, float64(l.perMinute)/10) }

// lookup runs a lookup within the timeout of the connection. It returns contact.ErrRateLimited or
// contact.ErrCircuitOpen without a request if the limits do not allow one.
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

// admit takes a token of the rate limit and a slot of the concurrent lookups. It returns false if there is none.
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

// health is the result of the last healthWindow lookups. p95 is in milliseconds, errors in percent; both are nil
// before the first lookup.
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

// applyTo copies the health into a connection for display.
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

// errorText returns the text of an error for display, at most 300 bytes.
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
