package crm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"soniq/internal/platform/db"
)

// Times of the renewal of tokens.
const (
	renewAhead = 5 * time.Minute  // before the expiry; the old token is still used
	renewLast  = 20 * time.Second // before the expiry; the token is no longer used
	renewTime  = 20 * time.Second // bounds a renewal
	renewAgain = time.Minute      // between two renewals that are forced because the vendor refuses a valid token
	leaseTime  = 30 * time.Second
	leaseWait  = 100 * time.Millisecond
)

// grantTokens supplies the tokens of a connection: from the consent of a person, or of an app that acts for itself. A
// new token is stored before it is used. Only one process renews at a time, because many vendors invalidate the old
// refresh token when they issue the next.
type grants struct {
	s *Service
	c Connection
	p provider
	d deal

	mu     sync.Mutex // guards the rest
	held   grant      // in use; Access is "" before the first token
	since  time.Time
	forced time.Time // last renewal because the vendor refused a token
	flight *renewal
}

// renewal is a renewal in progress. done is closed when g and err are set.
type renewal struct {
	done chan struct{}
	g    grant
	err  error
}

// credentials returns a usable token. If it expires soon, it starts a renewal in the background; without a usable
// token it waits for the renewal. refused is the token that the vendor refused, or "".
func (k *grants) key(ctx context.Context, refused string) (key, error) {
	now := k.s.Now()
	k.mu.Lock()
	g, young := k.held, now.Sub(k.forced) < renewAgain
	left := g.expires.Sub(now)
	forever := g.expires.IsZero()
	usable := g.Access != "" && (forever || left > renewLast) && (g.Access != refused || young && k.flight == nil)
	if usable && (forever || left > min(renewAhead, k.lifeLocked()/4)) {
		k.mu.Unlock()
		return k.of(g), nil
	}
	f := k.flight
	if f == nil {
		f = &renewal{done: make(chan struct{})}
		if k.flight = f; refused != "" {
			k.forced = now
		}
		k.s.running.Go(func() { k.renew(f, refused) })
	}
	k.mu.Unlock()
	if usable {
		return k.of(g), nil
	}
	select {
	case <-f.done:
		return k.of(f.g), f.err
	case <-ctx.Done():
		return key{}, ctx.Err()
	}
}

// lifeLocked returns the lifetime of the current token, counted from its receipt. The caller holds mu.
func (k *grants) lifeLocked() time.Duration { return k.held.expires.Sub(k.since) }

func (k *grants) of(g grant) key {
	out := *bearer(or(k.d.app.APIURL, g.Base, k.d.base), g.Access)
	if k.d.scheme != "" {
		out.value = k.d.scheme + " " + g.Access
	}
	out.account = g.Account
	return out
}

// renew runs a renewal. It is not cancelled when its callers are, because an issued token must be stored.
func (k *grants) renew(f *renewal, refused string) {
	ctx, cancel := context.WithTimeout(context.Background(), renewTime)
	defer cancel()
	if k.d.alone {
		f.g, f.err = k.mint(ctx)
	} else {
		f.g, f.err = k.fetch(ctx, refused)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.flight = nil; f.err == nil && f.g.Access != k.held.Access {
		k.held, k.since = f.g, k.s.Now()
	}
	close(f.done)
}

// fetchGrant reads the grant from the database. If it is refused or expires within renewBefore, it is renewed; if
// another process holds the lease, fetchGrant polls.
func (k *grants) fetch(ctx context.Context, refused string) (grant, error) {
	for {
		g, err := k.s.grantOf(ctx, k.s.DB.Read(ctx), k.c)
		switch {
		case db.IsNone(err):
			return g, fmt.Errorf("%w: nobody has agreed to the connection yet", ErrAuth)
		case err != nil:
			return g, err
		case g.refused != "":
			return g, fmt.Errorf("%w: %s", ErrAuth, g.refused)
		}
		if g.Access != refused && (g.expires.IsZero() || g.expires.Sub(k.s.Now()) > renewAhead) {
			return g, nil
		}
		if g.Refresh == "" {
			return g, fmt.Errorf("%w: the token has expired, and the vendor issued no refresh token", ErrAuth)
		}
		ours, err := k.s.lease(ctx, k.c, g.version)
		if err != nil {
			return g, err
		}
		if ours {
			return k.refresh(ctx, g)
		}
		select {
		case <-ctx.Done():
			return g, ctx.Err()
		case <-time.After(leaseWait): // another node renews; it publishes no event
		}
	}
}

// refreshGrant requests a new token and commits it before it is used.
func (k *grants) refresh(ctx context.Context, old grant) (grant, error) {
	client := k.d.client(k.s, k.p, old)
	t, err := client.TokenSource(k.s.tokens(ctx), &oauth2.Token{RefreshToken: old.Refresh}).Token()
	if err != nil {
		why := refusal(err)
		if why != "" {
			k.s.Log.Warn("a connected system refuses to renew our token: consent is required again", "org", k.c.org, "connection", k.c.ID,
				"provider", k.c.Provider, "err", why)
		}
		return old, errors.Join(tokenError(err), k.s.unlease(context.WithoutCancel(ctx), k.c, old.version, why))
	}
	g := old
	if err := k.s.learn(&g, k.d, t, nil); err != nil {
		return old, err
	}
	return g, k.s.DB.TxContext(context.WithoutCancel(ctx), func(ctx context.Context, tx db.Querier) error { return k.s.putGrant(ctx, tx, k.c, g) })
}

// mintAppToken requests a token for the app itself (RFC 6749 §4.4). It is not stored: the app can request another.
func (k *grants) mint(ctx context.Context) (g grant, err error) {
	c := k.d.client(k.s, k.p, g)
	app := clientcredentials.Config{ClientID: c.ClientID, ClientSecret: c.ClientSecret, TokenURL: c.Endpoint.TokenURL, Scopes: c.Scopes, AuthStyle: c.Endpoint.AuthStyle}
	t, err := app.Token(k.s.tokens(ctx))
	if err != nil {
		if why := refusal(err); why != "" {
			return g, fmt.Errorf("%w: %s", ErrAuth, why)
		}
		return g, tokenError(err)
	}
	return g, k.s.learn(&g, k.d, t, nil)
}

// tokenContext makes token requests use the client with the egress guard.
func (s *Service) tokens(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, s.asking)
}

// applyToken copies a token response into the grant, including the vendor's extra data. A returned API address must
// pass the egress guard.
func (s *Service) learn(g *grant, d deal, t *oauth2.Token, q url.Values) error {
	g.Access, g.expires = t.AccessToken, t.Expiry
	if t.RefreshToken != "" {
		g.Refresh = t.RefreshToken
	}
	if d.learn == nil {
		return nil
	}
	if err := d.learn(g, t, q); err != nil {
		return err
	}
	if g.Base == "" {
		return nil
	}
	if err := s.Guard.Check(g.Base); err != nil {
		return fmt.Errorf("%w: the token response contains an API address that is not allowed: %w", ErrRefused, err)
	}
	return nil
}

// permanentRefusal returns the reason if a vendor refuses a grant permanently; "" if the error may be temporary.
func refusal(err error) string {
	var e *oauth2.RetrieveError
	if !errors.As(err, &e) {
		return ""
	}
	status := 0
	if e.Response != nil {
		status = e.Response.StatusCode
	}
	switch {
	case e.ErrorCode == "" && status != http.StatusBadRequest && status != http.StatusUnauthorized:
		return ""
	case e.ErrorCode == "temporarily_unavailable", e.ErrorCode == "server_error", e.ErrorCode == "slow_down", status == http.StatusTooManyRequests, status >= 500:
		return ""
	}
	why := or(e.ErrorCode, fmt.Sprint(status))
	if e.ErrorDescription != "" {
		why += ": " + clipped(e.ErrorDescription)
	}
	return why
}

func clipped(text string) string {
	const most = 160
	if r := []rune(text); len(r) > most {
		return string(r[:most])
	}
	return text
}

// tokenError returns the error of a token request without the body of the answer, because it can contain tokens.
func tokenError(err error) error {
	var e *oauth2.RetrieveError
	switch {
	case !errors.As(err, &e):
		var u *url.Error
		if errors.As(err, &u) {
			return fmt.Errorf("ask for a token: %w", u.Err)
		}
		return errors.New("ask for a token: the answer cannot be read")
	case refusal(err) != "":
		return fmt.Errorf("%w: %s", ErrAuth, refusal(err))
	case e.Response != nil && e.Response.StatusCode == http.StatusTooManyRequests:
		return &Busy{After: retryAfter(e.Response.Header.Get("Retry-After"))}
	case e.Response != nil:
		return fmt.Errorf("ask for a token: the system answered %d", e.Response.StatusCode)
	}
	return errors.New("ask for a token: the system refuses it for now")
}
