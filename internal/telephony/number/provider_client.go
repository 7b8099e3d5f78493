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
var errCircuitOpen = errors.New("the provider failed too often; no requests are sent to it for 30 seconds")

// providerClient calls the API of a provider for one account through a circuit breaker. It is safe for concurrent
// use.
type providerClient struct {
	api     ProviderAPI
	version db.Time // updated_at of the account for which it was created
	breaker *gobreaker.CircuitBreaker[any]

	mu        sync.Mutex // guards last
	lastError error      // error of the last request; nil if it succeeded
}

func newProviderClient(m ProviderAPI, a Account) *providerClient {
	w := &providerClient{api: m, version: a.UpdatedAt}
	w.breaker = gobreaker.NewCircuitBreaker[any](gobreaker.Settings{Name: a.ID, Timeout: openTime,
		ReadyToTrip:  func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= maxFailures },
		IsSuccessful: func(err error) bool { return err == nil || errors.Is(err, ErrUnavailable) },
		IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) || errors.Is(err, ErrBusy) }})
	return w
}

// callProvider calls ask unless the circuit breaker is open.
func callProvider[T any](w *providerClient, ask func() (T, error)) (T, error) {
	v, err := w.breaker.Execute(func() (any, error) { return ask() })
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		err = errCircuitOpen
	} else if !errors.Is(err, context.Canceled) {
		w.recordResult(err)
	}
	t, _ := v.(T)
	return t, err
}

func (w *providerClient) recordResult(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lastError = err; errors.Is(err, ErrUnavailable) {
		w.lastError = nil
	}
}

func (w *providerClient) health() (status string, last *string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lastError != nil {
		text := errorText(w.lastError)
		last = &text
	}
	switch {
	case errors.Is(w.lastError, ErrAuth):
		return "auth_required", last
	case w.lastError != nil:
		return "degraded", last
	}
	return "active", nil
}

// errorText returns an error as the API shows it, in at most 300 characters.
func errorText(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	text := []rune(err.Error())
	return string(text[:min(len(text), 300)])
}

// Search implements ProviderAPI.
func (w *providerClient) Search(ctx context.Context, wish SearchCriteria) ([]Available, error) {
	return callProvider(w, func() ([]Available, error) { return w.api.Search(ctx, wish) })
}

// Order implements ProviderAPI.
func (w *providerClient) Order(ctx context.Context, d OrderRequest) (OrderStatus, error) {
	return callProvider(w, func() (OrderStatus, error) { return w.api.Order(ctx, d) })
}

// Release implements ProviderAPI.
func (w *providerClient) Release(ctx context.Context, d OrderRequest) error {
	_, err := callProvider(w, func() (struct{}, error) { return struct{}{}, w.api.Release(ctx, d) })
	return err
}

// clientFor returns the client of an account. It creates one if the account is new or has changed. It returns nil if
// the provider is not supported.
func (s *Service) clientFor(a Account) *providerClient {
	seller, ok := s.config.AccountProviders[a.Provider]
	if !ok {
		return nil
	}
	s.clientsMu.Lock()
	defer s.clientsMu.Unlock()
	w := s.clients[a.ID]
	if w == nil || !w.version.Equal(a.UpdatedAt.Time) {
		w = newProviderClient(seller.Open(a.credentials), a)
		s.clients[a.ID] = w
	}
	return w
}

// existingClient returns the client of an account if there was a request since the account changed, else nil.
func (s *Service) existingClient(a Account) *providerClient {
	s.clientsMu.Lock()
	defer s.clientsMu.Unlock()
	if w := s.clients[a.ID]; w != nil && w.version.Equal(a.UpdatedAt.Time) {
		return w
	}
	return nil
}
