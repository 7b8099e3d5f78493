package number

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"soniq/internal/platform/db"
)

// When a provider is left alone.
const (
	maxFailures = 5 // in a row
	openTime    = 30 * time.Second
)

// errOpen says that a provider failed too often to be asked now.
var errOpen = errors.New("the provider failed too often, and is left alone for a moment")

// A way is a market with a breaker before it. It is safe for concurrent use.
type way struct {
	market  Market
	version db.Time // of the account it was made for
	breaker *gobreaker.CircuitBreaker[any]

	mu   sync.Mutex // guards last
	last error      // of the last question; nil when it went well
}

func newWay(m Market, a Account) *way {
	w := &way{market: m, version: a.UpdatedAt}
	w.breaker = gobreaker.NewCircuitBreaker[any](gobreaker.Settings{Name: a.ID, Timeout: openTime,
		ReadyToTrip:  func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= maxFailures },
		IsSuccessful: func(err error) bool { return err == nil || errors.Is(err, ErrUnavailable) },
		IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) || errors.Is(err, ErrBusy) }})
	return w
}

// through asks the market, unless it failed too often.
func through[T any](w *way, ask func() (T, error)) (T, error) {
	v, err := w.breaker.Execute(func() (any, error) { return ask() })
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		err = errOpen
	} else if !errors.Is(err, context.Canceled) {
		w.note(err)
	}
	t, _ := v.(T)
	return t, err
}

func (w *way) note(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last = err; errors.Is(err, ErrUnavailable) {
		w.last = nil
	}
}

func (w *way) health() (status string, last *string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last != nil {
		text := words(w.last)
		last = &text
	}
	switch {
	case errors.Is(w.last, ErrAuth):
		return "auth_required", last
	case w.last != nil:
		return "degraded", last
	}
	return "active", nil
}

// words is an error as people are told of it.
func words(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	text := []rune(err.Error())
	return string(text[:min(len(text), 300)])
}

// Search asks the market.
func (w *way) Search(ctx context.Context, wish Wish) ([]Available, error) {
	return through(w, func() ([]Available, error) { return w.market.Search(ctx, wish) })
}

// Order asks the market.
func (w *way) Order(ctx context.Context, d Deal) (Order, error) {
	return through(w, func() (Order, error) { return w.market.Order(ctx, d) })
}

// Release asks the market.
func (w *way) Release(ctx context.Context, d Deal) error {
	_, err := through(w, func() (struct{}, error) { return struct{}{}, w.market.Release(ctx, d) })
	return err
}

// way is how the provider of an account is asked; nil where it cannot be.
func (s *Service) way(a Account) *way {
	seller, ok := s.Sellers[a.Provider]
	if !ok {
		return nil
	}
	s.waysMu.Lock()
	defer s.waysMu.Unlock()
	w := s.ways[a.ID]
	if w == nil || !w.version.Equal(a.UpdatedAt.Time) {
		w = newWay(seller.Open(a.credentials), a)
		s.ways[a.ID] = w
	}
	return w
}

// opened is the way to an account if it was asked already.
func (s *Service) opened(a Account) *way {
	s.waysMu.Lock()
	defer s.waysMu.Unlock()
	if w := s.ways[a.ID]; w != nil && w.version.Equal(a.UpdatedAt.Time) {
		return w
	}
	return nil
}
