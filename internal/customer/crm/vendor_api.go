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

// A pace is how often a vendor may be asked: every so often, so many at once. Searches count for the second too.
type pace struct {
	every time.Duration // between two requests, in the long run
	burst int
	kind  string // "search", or "" for all requests
}

// An api speaks with one vendor for one connection: it dresses requests, keeps to the vendor's limits and reads its errors. It is
// safe for concurrent use.
type api struct {
	org      string
	keys     keyring
	client   *http.Client
	contacts *contact.Service
	verdict  func(status int, h http.Header, body []byte) error
	now      func() time.Time
	limits   map[string]*rate.Limiter

	mu    sync.Mutex // guards quiet
	quiet time.Time  // until then the vendor wants to be left alone
}

// api makes the way to a vendor.
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

// A want is one request.
type want struct {
	method, path string
	query        url.Values
	body         any
	header       map[string]string
	search       bool
}

// do makes a request, with a new token where the vendor refuses the old one, and reads the JSON of its answer into out. Nothing found is
// errNothing, an answer without content leaves out as it is.
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

// patience is how long who has the time waits for their turn; who asks while a phone rings has none.
const patience = 10 * time.Second

// admit waits for the turn of a request, or says how long that would be.
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

// heed keeps quiet where the vendor asks for it.
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

// judge turns an answer into an error: as its vendor means it, else as all do.
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

// errExpired says that the vendor does not accept a token, which may only be too old.
var errExpired = fmt.Errorf("%w: 401", ErrAuth)

// said is an error with what the vendor says of it.
type said struct {
	error
	words string
}

func (s *said) Unwrap() error { return s.error }

func (s *said) Error() string {
	if s.words == "" {
		return s.error.Error()
	}
	return s.error.Error() + ": " + s.words
}

// reasons are where vendors write what is wrong.
var reasons = []string{"message", "[0].message", "error.message", "errors[0].message", "data[0].message", "error_description", "error_info", "description", "title", "error"}

// reason is what an answer says is wrong, in one line; "" where it does not tell.
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
