package number

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"soniq/internal/platform/db"
)

// The circuit breaker of a provider opens after maxFailures, for openTime.
const (
	maxFailures = 5 // consecutive
	openTime    = 30 * time.Second
)

// errCircuitOpen reports that the circuit breaker of a provider is open.
var errOpen = errors.New("the provider failed too often; no requests are sent to it for 30 seconds")

// providerClient calls the API of a provider for one account through a circuit breaker. It is safe for concurrent
// use.
type way struct {
	market  Market
	version db.Time // updated_at of the account for which it was created
	breaker *gobreaker.CircuitBreaker[any]

	mu   sync.Mutex // guards last
	last error      // error of the last request; nil if it succeeded
}

func newWay(m Market, a Account) *way {
	w := &way{market: m, version: a.UpdatedAt}
	w.breaker = gobreaker.NewCircuitBreaker[any](gobreaker.Settings{Name: a.ID, Timeout: openTime,
		ReadyToTrip:  func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= maxFailures },
		IsSuccessful: func(err error) bool { return err == nil || errors.Is(err, ErrUnavailable) },
		IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) || errors.Is(err, ErrBusy) }})
	return w
}

// callProvider calls ask unless the circuit breaker is open.
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

// errorText returns an error as the API shows it, in at most 300 characters.
func words(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	text := []rune(err.Error())
	return string(text[:min(len(text), 300)])
}

// Search implements ProviderAPI.
func (w *way) Search(ctx context.Context, wish Wish) ([]Available, error) {
	return through(w, func() ([]Available, error) { return w.market.Search(ctx, wish) })
}

// Order implements ProviderAPI.
func (w *way) Order(ctx context.Context, d Deal) (Order, error) {
	return through(w, func() (Order, error) { return w.market.Order(ctx, d) })
}

// Release implements ProviderAPI.
func (w *way) Release(ctx context.Context, d Deal) error {
	_, err := through(w, func() (struct{}, error) { return struct{}{}, w.market.Release(ctx, d) })
	return err
}

// clientFor returns the client of an account. It creates one if the account is new or has changed. It returns nil if
// the provider is not supported.
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

// existingClient returns the client of an account if there was a request since the account changed, else nil.
func (s *Service) opened(a Account) *way {
	s.waysMu.Lock()
	defer s.waysMu.Unlock()
	if w := s.ways[a.ID]; w != nil && w.version.Equal(a.UpdatedAt.Time) {
		return w
	}
	return nil
}
