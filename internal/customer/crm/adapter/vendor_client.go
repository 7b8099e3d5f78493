package adapter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/jsonpath"
	"soniq/internal/platform/strictjson"
)

// rateLimit is a rate limit of a vendor: one request per interval in the long run, and a burst. A search counts
// against the general limit and the limit for searches.
type rateLimit struct {
	interval time.Duration // between two requests, in the long run
	burst    int
	kind     string // "search", or "" for all requests
}

// vendorClient sends the API requests of one connection to its vendor. It adds the credentials, enforces the vendor's
// rate limits and maps its errors. It is safe for concurrent use.
type vendorClient struct {
	org              string
	credentialSource CredentialSource
	client           *http.Client
	contacts         *contact.Service
	classifyError    func(status int, h http.Header, body []byte) error
	now              func() time.Time
	rateLimiters     map[string]*rate.Limiter

	mu          sync.Mutex // guards quiet
	pausedUntil time.Time  // no requests before this time, because the vendor requested a pause
}

// newVendorClient returns the client for a connection to a vendor.
func (e *Env) newVendorClient(org string, d VendorConnection, source CredentialSource) *vendorClient {
	a := &vendorClient{org: org, credentialSource: source, client: e.Lookups, contacts: e.Contacts, classifyError: d.classifyError,
		now:          e.Clock.Now,
		rateLimiters: map[string]*rate.Limiter{}}
	for _, x := range d.rateLimits {
		a.rateLimiters[x.kind] = rate.NewLimiter(rate.Every(x.interval), x.burst)
	}
	return a
}

// apiRequest is one API request. path is relative to the base address of the credentials.
type apiRequest struct {
	method, path string
	query        url.Values
	body         any
	header       map[string]string
	search       bool
}

// do sends a request and decodes the JSON of its answer into out. If the vendor refuses the token, it renews the
// token and repeats the request once. A 404 returns errNotFound. An answer without content leaves out unchanged.
func (a *vendorClient) do(ctx context.Context, w apiRequest, out any) error {
	if err := a.admit(ctx, w); err != nil {
		return err
	}
	k, err := a.credentialSource.Credentials(ctx, "")
	if err != nil {
		return err
	}
	err = a.send(ctx, k, w, out)
	if errors.Is(err, errTokenExpired) {
		fresh, second := a.credentialSource.Credentials(ctx, k.token)
		if second != nil || fresh.token == k.token {
			return errors.Join(err, second)
		}
		err = a.send(ctx, fresh, w, out)
	}
	a.notePause(err)
	return err
}

// maxRateWait is the longest wait for a rate limit. A lookup during a call has a short deadline and does not wait.
const maxRateWait = 10 * time.Second

// admit waits for the rate limits, or returns a BusyError with the time to wait.
func (a *vendorClient) admit(ctx context.Context, w apiRequest) error {
	a.mu.Lock()
	quiet := a.pausedUntil.Sub(a.now())
	a.mu.Unlock()
	if quiet > 0 {
		return &BusyError{After: quiet}
	}
	for name, l := range a.rateLimiters {
		if name == "search" && !w.search {
			continue
		}
		if err := waitLimiter(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

func waitLimiter(ctx context.Context, l *rate.Limiter) error {
	r := l.Reserve()
	wait := r.Delay()
	if wait == 0 {
		return nil
	}
	if end, bounded := ctx.Deadline(); bounded && time.Until(end) < maxRateWait+wait || wait > maxRateWait {
		r.Cancel()
		return &BusyError{After: wait}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		r.Cancel()
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// notePause stores the pause that the vendor requested.
func (a *vendorClient) notePause(err error) {
	var busy *BusyError
	if errors.As(err, &busy) {
		a.mu.Lock()
		a.pausedUntil = a.now().Add(busy.After)
		a.mu.Unlock()
	}
}

func (a *vendorClient) send(ctx context.Context, k Credentials, w apiRequest, out any) error {
	r, err := w.request(ctx, k)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	answer, err := a.client.Do(r)
	if err != nil {
		return WithoutURL(ctx, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return WithoutURL(ctx, err)
	}
	if err := a.responseError(answer, body); err != nil {
		return err
	}
	if len(bytes.TrimSpace(body)) == 0 || out == nil {
		return nil
	}
	if err := json.Unmarshal(strictjson.WithoutDamaged(body), out); err != nil {
		return errors.New("the answer cannot be read")
	}
	return nil
}

func (w apiRequest) request(ctx context.Context, k Credentials) (*http.Request, error) {
	address := k.base + w.path
	if len(w.query) > 0 {
		address += "?" + strings.ReplaceAll(w.query.Encode(), "+", "%20")
	}
	var content io.Reader
	if w.body != nil {
		text, err := json.Marshal(w.body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, w.method, address, content)
	if err != nil {
		return nil, errors.New("not an address of a record")
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "soniq")
	if w.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set(k.header, k.value)
	for name, value := range w.header {
		r.Header.Set(name, value)
	}
	return r, nil
}

// responseError maps an answer to an error: with the vendor's own mapping first, then with the common one.
func (a *vendorClient) responseError(answer *http.Response, body []byte) error {
	if answer.StatusCode >= 200 && answer.StatusCode < 300 {
		return nil
	}
	if a.classifyError != nil {
		if err := a.classifyError(answer.StatusCode, answer.Header, body); err != nil {
			return err
		}
	}
	switch s, h := answer.StatusCode, answer.Header; {
	case s == http.StatusServiceUnavailable && h.Get("Retry-After") != "":
		return &BusyError{After: parseRetryAfter(h.Get("Retry-After"))}
	case s == http.StatusUnauthorized:
		return &vendorError{errTokenExpired, vendorMessage(body)}
	case s >= 400 && s < 500 && s != http.StatusNotFound && s != http.StatusTooManyRequests && s != http.StatusRequestTimeout:
		if err := statusError(answer); err != nil {
			return &vendorError{err, vendorMessage(body)}
		}
	}
	return statusError(answer)
}

// errTokenExpired means that the vendor does not accept a token, possibly only because it has expired.
var errTokenExpired = fmt.Errorf("%w: 401", ErrAuth)

// vendorError is an error with the vendor's message.
type vendorError struct {
	error
	message string
}

// Unwrap returns the error without the message.
func (s *vendorError) Unwrap() error { return s.error }

// Error returns the error, and the message if there is one.
func (s *vendorError) Error() string {
	if s.message == "" {
		return s.error.Error()
	}
	return s.error.Error() + ": " + s.message
}

// messagePaths are the paths at which vendors put their error messages.
var messagePaths = compileAll("message", "[0].message", "error.message", "errors[0].message", "data[0].message",
	"error_description", "error_info", "description", "title", "error")

func compileAll(texts ...string) (all []jsonpath.Path) {
	for _, text := range texts {
		all = append(all, jsonpath.MustParse(text))
	}
	return all
}

// vendorMessage returns the error message of an answer in one line; "" if there is none.
func vendorMessage(body []byte) string {
	var doc any
	if json.Unmarshal(body, &doc) != nil {
		return ""
	}
	for _, p := range messagePaths {
		if text := p.Text(doc); text != "" {
			const most = 160
			if r := []rune(text); len(r) > most {
				text = string(r[:most])
			}
			return strings.Join(strings.Fields(text), " ")
		}
	}
	return ""
}
