package crm

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
)

// rateLimit is a rate limit of a vendor: one request per interval in the long run, and a burst. A search counts
// against the general limit and the limit for searches.
type pace struct {
	every time.Duration // between two requests, in the long run
	burst int
	kind  string // "search", or "" for all requests
}

// vendorClient sends the API requests of one connection to its vendor. It adds the credentials, enforces the vendor's
// rate limits and maps its errors. It is safe for concurrent use.
type api struct {
	org      string
	keys     keyring
	client   *http.Client
	contacts *contact.Service
	verdict  func(status int, h http.Header, body []byte) error
	now      func() time.Time
	limits   map[string]*rate.Limiter

	mu    sync.Mutex // guards quiet
	quiet time.Time  // no requests before this time, because the vendor requested a pause
}

// newVendorClient returns the client for a connection to a vendor.
func (s *Service) api(c Connection, p provider, d deal) *api {
	a := &api{org: c.org, client: s.asking, contacts: s.Contacts, verdict: d.verdict, now: s.Now, limits: map[string]*rate.Limiter{}}
	for _, x := range d.pace {
		a.limits[x.kind] = rate.NewLimiter(rate.Every(x.every), x.burst)
	}
	switch {
	case d.fixed != nil:
		a.keys = fixedKey{*d.fixed}
	default:
		a.keys = &grants{s: s, c: c, p: p, d: d}
	}
	return a
}

// apiRequest is one API request. path is relative to the base address of the credentials.
type want struct {
	method, path string
	query        url.Values
	body         any
	header       map[string]string
	search       bool
}

// do sends a request and decodes the JSON of its answer into out. If the vendor refuses the token, it renews the
// token and repeats the request once. A 404 returns errNotFound. An answer without content leaves out unchanged.
func (a *api) do(ctx context.Context, w want, out any) error {
	if err := a.admit(ctx, w); err != nil {
		return err
	}
	k, err := a.keys.key(ctx, "")
	if err != nil {
		return err
	}
	err = a.once(ctx, k, w, out)
	if errors.Is(err, errExpired) {
		fresh, second := a.keys.key(ctx, k.token)
		if second != nil || fresh.token == k.token {
			return errors.Join(err, second)
		}
		err = a.once(ctx, fresh, w, out)
	}
	a.heed(err)
	return err
}

// maxRateWait is the longest wait for a rate limit. A lookup during a call has a short deadline and does not wait.
const patience = 10 * time.Second

// admit waits for the rate limits, or returns a BusyError with the time to wait.
func (a *api) admit(ctx context.Context, w want) error {
	a.mu.Lock()
	quiet := a.quiet.Sub(a.now())
	a.mu.Unlock()
	if quiet > 0 {
		return &Busy{After: quiet}
	}
	for name, l := range a.limits {
		if name == "search" && !w.search {
			continue
		}
		if err := turn(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

func turn(ctx context.Context, l *rate.Limiter) error {
	r := l.Reserve()
	wait := r.Delay()
	if wait == 0 {
		return nil
	}
	if end, bounded := ctx.Deadline(); bounded && time.Until(end) < patience+wait || wait > patience {
		r.Cancel()
		return &Busy{After: wait}
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
func (a *api) heed(err error) {
	var busy *Busy
	if errors.As(err, &busy) {
		a.mu.Lock()
		a.quiet = a.now().Add(busy.After)
		a.mu.Unlock()
	}
}

func (a *api) once(ctx context.Context, k key, w want, out any) error {
	r, err := w.request(ctx, k)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	answer, err := a.client.Do(r)
	if err != nil {
		return short(ctx, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return short(ctx, err)
	}
	if err := a.judge(answer, body); err != nil {
		return err
	}
	if len(bytes.TrimSpace(body)) == 0 || out == nil {
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return errors.New("the answer cannot be read")
	}
	return nil
}

func (w want) request(ctx context.Context, k key) (*http.Request, error) {
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
func (a *api) judge(answer *http.Response, body []byte) error {
	if answer.StatusCode >= 200 && answer.StatusCode < 300 {
		return nil
	}
	if a.verdict != nil {
		if err := a.verdict(answer.StatusCode, answer.Header, body); err != nil {
			return err
		}
	}
	switch s, h := answer.StatusCode, answer.Header; {
	case s == http.StatusServiceUnavailable && h.Get("Retry-After") != "":
		return &Busy{After: retryAfter(h.Get("Retry-After"))}
	case s == http.StatusUnauthorized:
		return &said{errExpired, reason(body)}
	case s >= 400 && s < 500 && s != http.StatusNotFound && s != http.StatusTooManyRequests && s != http.StatusRequestTimeout:
		if err := verdict(answer); err != nil {
			return &said{err, reason(body)}
		}
	}
	return verdict(answer)
}

// errTokenExpired means that the vendor does not accept a token, possibly only because it has expired.
var errExpired = fmt.Errorf("%w: 401", ErrAuth)

// vendorError is an error with the vendor's message.
type said struct {
	error
	words string
}

// Unwrap returns the error without the message.
func (s *said) Unwrap() error { return s.error }

// Error returns the error, and the message if there is one.
func (s *said) Error() string {
	if s.words == "" {
		return s.error.Error()
	}
	return s.error.Error() + ": " + s.words
}

// messagePaths are the paths at which vendors put their error messages.
var reasons = []string{"message", "[0].message", "error.message", "errors[0].message", "data[0].message", "error_description", "error_info", "description", "title", "error"}

// vendorMessage returns the error message of an answer in one line; "" if there is none.
func reason(body []byte) string {
	var doc any
	if json.Unmarshal(body, &doc) != nil {
		return ""
	}
	for _, at := range reasons {
		p, _ := parsePath(at)
		if text := p.text(doc); text != "" {
			const most = 160
			if r := []rune(text); len(r) > most {
				text = string(r[:most])
			}
			return strings.Join(strings.Fields(text), " ")
		}
	}
	return ""
}
