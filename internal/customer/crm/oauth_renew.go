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
	renewBefore         = 5 * time.Minute  // before the expiry; the old token is still used
	expiryMargin        = 20 * time.Second // before the expiry; the token is no longer used
	renewTimeout        = 20 * time.Second // bounds a renewal
	forcedRenewInterval = time.Minute      // between two renewals that are forced because the vendor refuses a valid token
	leaseDuration       = 30 * time.Second
	leasePollInterval   = 100 * time.Millisecond
)

// grantTokens supplies the tokens of a connection: from the consent of a person, or of an app that acts for itself. A
// new token is stored before it is used. Only one process renews at a time, because many vendors invalidate the old
// refresh token when they issue the next.
type grantTokens struct {
	s *Service
	c Connection
	p provider
	d vendorConnection

	mu         sync.Mutex // guards the rest
	current    grant      // in use; Access is "" before the first token
	receivedAt time.Time
	forcedAt   time.Time // last renewal because the vendor refused a token
	inProgress *renewal
}

// renewal is a renewal in progress. done is closed when g and err are set.
type renewal struct {
	done chan struct{}
	g    grant
	err  error
}

// credentials returns a usable token. If it expires soon, it starts a renewal in the background; without a usable
// token it waits for the renewal. refused is the token that the vendor refused, or "".
func (k *grantTokens) credentials(ctx context.Context, refused string) (credentials, error) {
	now := k.s.Now()
	k.mu.Lock()
	g, young := k.current, now.Sub(k.forcedAt) < forcedRenewInterval
	left := g.expires.Sub(now)
	forever := g.expires.IsZero()
	usable := g.Access != "" && (forever || left > expiryMargin) && (g.Access != refused || young && k.inProgress == nil)
	if usable && (forever || left > min(renewBefore, k.lifeLocked()/4)) {
		k.mu.Unlock()
		return k.credentialsOf(g), nil
	}
	f := k.inProgress
	if f == nil {
		f = &renewal{done: make(chan struct{})}
		if k.inProgress = f; refused != "" {
			k.forcedAt = now
		}
		k.s.renewals.Go(func() { k.renew(f, refused) })
	}
	k.mu.Unlock()
	if usable {
		return k.credentialsOf(g), nil
	}
	select {
	case <-f.done:
		return k.credentialsOf(f.g), f.err
	case <-ctx.Done():
		return credentials{}, ctx.Err()
	}
}

// lifeLocked returns the lifetime of the current token, counted from its receipt. The caller holds mu.
func (k *grantTokens) lifeLocked() time.Duration { return k.current.expires.Sub(k.receivedAt) }

func (k *grantTokens) credentialsOf(g grant) credentials {
	out := *bearer(firstNonEmpty(k.d.app.APIURL, g.Base, k.d.base), g.Access)
	if k.d.scheme != "" {
		out.value = k.d.scheme + " " + g.Access
	}
	out.account = g.Account
	return out
}

// renew runs a renewal. It is not cancelled when its callers are, because an issued token must be stored.
func (k *grantTokens) renew(f *renewal, refused string) {
	ctx, cancel := context.WithTimeout(context.Background(), renewTimeout)
	defer cancel()
	if k.d.clientCredentials {
		f.g, f.err = k.mintAppToken(ctx)
	} else {
		f.g, f.err = k.fetchGrant(ctx, refused)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.inProgress = nil; f.err == nil && f.g.Access != k.current.Access {
		k.current, k.receivedAt = f.g, k.s.Now()
	}
	close(f.done)
}

// fetchGrant reads the grant from the database. If it is refused or expires within renewBefore, it is renewed; if
// another process holds the lease, fetchGrant polls.
func (k *grantTokens) fetchGrant(ctx context.Context, refused string) (grant, error) {
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
		if g.Access != refused && (g.expires.IsZero() || g.expires.Sub(k.s.Now()) > renewBefore) {
			return g, nil
		}
		if g.Refresh == "" {
			return g, fmt.Errorf("%w: the token has expired, and the vendor issued no refresh token", ErrAuth)
		}
		ours, err := k.s.leaseRenewal(ctx, k.c, g.version)
		if err != nil {
			return g, err
		}
		if ours {
			return k.refreshGrant(ctx, g)
		}
		select {
		case <-ctx.Done():
			return g, ctx.Err()
		case <-time.After(leasePollInterval): // another node renews; it publishes no event
		}
	}
}

// refreshGrant requests a new token and commits it before it is used.
func (k *grantTokens) refreshGrant(ctx context.Context, old grant) (grant, error) {
	client := k.d.client(k.s, k.p, old)
	t, err := client.TokenSource(k.s.tokenContext(ctx), &oauth2.Token{RefreshToken: old.Refresh}).Token()
	if err != nil {
		why := permanentRefusal(err)
		if why != "" {
			k.s.Log.Warn("a connected system refuses to renew our token: consent is required again", "org", k.c.org, "connection", k.c.ID,
				"provider", k.c.Provider, "err", why)
		}
		return old, errors.Join(tokenError(err), k.s.releaseRenewal(context.WithoutCancel(ctx), k.c, old.version, why))
	}
	g := old
	if err := k.s.applyToken(&g, k.d, t, nil); err != nil {
		return old, err
	}
	return g, k.s.DB.TxContext(context.WithoutCancel(ctx), func(ctx context.Context, tx db.Querier) error { return k.s.putGrant(ctx, tx, k.c, g) })
}

// mintAppToken requests a token for the app itself (RFC 6749 §4.4). It is not stored: the app can request another.
func (k *grantTokens) mintAppToken(ctx context.Context) (g grant, err error) {
	c := k.d.client(k.s, k.p, g)
	app := clientcredentials.Config{ClientID: c.ClientID, ClientSecret: c.ClientSecret, TokenURL: c.Endpoint.TokenURL, Scopes: c.Scopes, AuthStyle: c.Endpoint.AuthStyle}
	t, err := app.Token(k.s.tokenContext(ctx))
	if err != nil {
		if why := permanentRefusal(err); why != "" {
			return g, fmt.Errorf("%w: %s", ErrAuth, why)
		}
		return g, tokenError(err)
	}
	return g, k.s.applyToken(&g, k.d, t, nil)
}

// tokenContext makes token requests use the client with the egress guard.
func (s *Service) tokenContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, s.lookupClient)
}

// applyToken copies a token response into the grant, including the vendor's extra data. A returned API address must
// pass the egress guard.
func (s *Service) applyToken(g *grant, d vendorConnection, t *oauth2.Token, q url.Values) error {
	g.Access, g.expires = t.AccessToken, t.Expiry
	if t.RefreshToken != "" {
		g.Refresh = t.RefreshToken
	}
	if d.onToken == nil {
		return nil
	}
	if err := d.onToken(g, t, q); err != nil {
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
func permanentRefusal(err error) string {
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
	why := firstNonEmpty(e.ErrorCode, fmt.Sprint(status))
	if e.ErrorDescription != "" {
		why += ": " + clip(e.ErrorDescription)
	}
	return why
}

func clip(text string) string {
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
	case permanentRefusal(err) != "":
		return fmt.Errorf("%w: %s", ErrAuth, permanentRefusal(err))
	case e.Response != nil && e.Response.StatusCode == http.StatusTooManyRequests:
		return &BusyError{After: parseRetryAfter(e.Response.Header.Get("Retry-After"))}
	case e.Response != nil:
		return fmt.Errorf("ask for a token: the system answered %d", e.Response.StatusCode)
	}
	return errors.New("ask for a token: the system refuses it for now")
}
