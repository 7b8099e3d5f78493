package crm

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"

	"soniq/internal/customer/contact"
	"soniq/internal/customer/crm/adapter"
	"soniq/internal/platform/db"
)

// Limits of lookups, and the circuit breaker.
const (
	maxConsecutiveFailures = 5 // in a row
	breakerOpenTime        = 30 * time.Second
	maxConcurrentLookups   = 16 // concurrent lookups
	healthWindow           = 100
	defaultPerMinute       = 600 // lookups per minute
	burstDivisor           = 10  // a tenth of a minute's lookups may start at once
	degradedPercent        = 20  // percent of errors
)

// connectionClient sends lookups to one connected system. It enforces the rate limit, the circuit breaker and the
// limit of concurrent lookups, and measures their times. It is replaced when the connection changes. It is safe for
// concurrent use.
type connectionClient struct {
	adapter adapter.Adapter
	version db.Time // updated_at of the connection it was built from
	timeout time.Duration
	breaker *gobreaker.CircuitBreaker[[]contact.Record]
	limiter *rate.Limiter
	now     func() time.Time

	mu          sync.Mutex // guards the rest
	inFlight    int
	pausedUntil time.Time // no lookups before this time, because the system requested a pause
	durations   []time.Duration
	failed      []bool
	lastErr     error // of the last lookup; nil if it succeeded
}

// rateLimited is an adapter that knows how many lookups its system accepts per minute; 0 means the default.
type rateLimited interface{ RequestsPerMinute() int }

func newConnectionClient(a adapter.Adapter, c Connection, now func() time.Time) *connectionClient {
	perMinute := defaultPerMinute
	if p, ok := a.(rateLimited); ok && p.RequestsPerMinute() > 0 {
		perMinute = p.RequestsPerMinute()
	}
	l := &connectionClient{adapter: a, version: c.updatedAt, timeout: c.timeout(), now: now,
		limiter: rate.NewLimiter(rate.Limit(float64(perMinute)/60), max(1, perMinute/burstDivisor))}
	l.breaker = gobreaker.NewCircuitBreaker[[]contact.Record](gobreaker.Settings{Name: c.ID, Timeout: breakerOpenTime,
		ReadyToTrip: func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= maxConsecutiveFailures },
		IsExcluded:  func(err error) bool { return errors.Is(err, context.Canceled) || isExcluded(err) }})
	return l
}

// isExcluded reports whether the breaker ignores an error: no request was sent, or the system is healthy but busy.
func isExcluded(err error) bool {
	var busy *adapter.BusyError
	return errors.Is(err, contact.ErrRateLimited) || errors.Is(err, contact.ErrSkipped) || errors.As(err, &busy)
}

// Lookup runs a lookup within the timeout of the connection. It returns contact.ErrRateLimited or
// contact.ErrCircuitOpen without a request if the limits do not allow one.
func (l *connectionClient) Lookup(ctx context.Context, q contact.Query) ([]contact.Record, error) {
	f, ok := l.adapter.(adapter.Searcher)
	if !ok {
		return nil, contact.ErrSkipped
	}
	found, err := l.breaker.Execute(func() ([]contact.Record, error) {
		if !l.admit() {
			return nil, contact.ErrRateLimited
		}
		ctx, cancel := context.WithTimeout(ctx, l.timeout)
		defer cancel()
		began := time.Now()
		found, err := f.Lookup(ctx, q)
		if l.finish(time.Since(began), err); errors.As(err, new(*adapter.BusyError)) {
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
func (l *connectionClient) admit() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if l.inFlight >= maxConcurrentLookups || now.Before(l.pausedUntil) || !l.limiter.AllowN(now, 1) {
		return false
	}
	l.inFlight++
	return true
}

func (l *connectionClient) finish(took time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight--
	var busy *adapter.BusyError
	if errors.As(err, &busy) {
		l.pausedUntil = l.now().Add(busy.After)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, contact.ErrSkipped) {
		return
	}
	l.lastErr = err
	l.durations, l.failed = append(l.durations, took), append(l.failed, err != nil)
	if len(l.durations) > healthWindow {
		l.durations, l.failed = l.durations[1:], l.failed[1:]
	}
}

// health is the result of the last healthWindow lookups. p95 is in milliseconds, errors in percent; both are nil
// before the first lookup.
type health struct {
	p95, errors *int
	last        error
	open        bool
}

func (l *connectionClient) health() health {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := health{last: l.lastErr, open: l.breaker.State() != gobreaker.StateClosed}
	if len(l.durations) == 0 {
		return h
	}
	sorted := slices.Sorted(slices.Values(l.durations))
	p95 := int((sorted[(len(sorted)*95-1)/100] + time.Millisecond - 1) / time.Millisecond)
	bad := 0
	for _, f := range l.failed {
		if f {
			bad++
		}
	}
	percent := bad * 100 / len(l.failed)
	h.p95, h.errors = &p95, &percent
	return h
}

// applyTo copies the health into a connection for display.
func (h health) applyTo(c *Connection) {
	c.LookupP95MS, c.ErrorRate = h.p95, h.errors
	if h.last != nil {
		text := errorText(h.last)
		c.LastError = &text
	}
	switch {
	case errors.Is(h.last, adapter.ErrAuth):
		c.Status = "auth_required"
	case h.open, h.errors != nil && *h.errors >= degradedPercent:
		c.Status = "degraded"
	}
}

// errorText returns the text of an error for display, at most 300 bytes.
func errorText(err error) string {
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
