package crm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"soniq/internal/customer/crm/adapter"
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
	p adapter.Provider
	d adapter.VendorConnection

	mu         sync.Mutex    // guards the rest
	current    adapter.Grant // in use; Access is "" before the first token
	receivedAt time.Time
	forcedAt   time.Time // last renewal because the vendor refused a token
	inProgress *renewal
}

// renewal is a renewal in progress. done is closed when g and err are set.
type renewal struct {
	done chan struct{}
	g    adapter.Grant
	err  error
}

// Credentials returns a usable token. If it expires soon, it starts a renewal in the background; without a usable
// token it waits for the renewal. refused is the token that the vendor refused, or "".
func (k *grantTokens) Credentials(ctx context.Context, refused string) (adapter.Credentials, error) {
	now := k.s.cfg.Clock.Now()
	k.mu.Lock()
	g, young := k.current, now.Sub(k.forcedAt) < forcedRenewInterval
	left := g.Expires.Sub(now)
	forever := g.Expires.IsZero()
	usable := g.Access != "" && (forever || left > expiryMargin) && (g.Access != refused || young && k.inProgress == nil)
	if usable && (forever || left > min(renewBefore, k.lifeLocked()/4)) {
		k.mu.Unlock()
		return k.d.Credentials(g), nil
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
		return k.d.Credentials(g), nil
	}
	select {
	case <-f.done:
		return k.d.Credentials(f.g), f.err
	case <-ctx.Done():
		return adapter.Credentials{}, ctx.Err()
	}
}

// lifeLocked returns the lifetime of the current token, counted from its receipt. The caller holds mu.
func (k *grantTokens) lifeLocked() time.Duration { return k.current.Expires.Sub(k.receivedAt) }

// renew runs a renewal. It is not cancelled when its callers are, because an issued token must be stored.
func (k *grantTokens) renew(f *renewal, refused string) {
	ctx, cancel := context.WithTimeout(context.Background(), renewTimeout)
	defer cancel()
	if k.d.ActsForItself() {
		f.g, f.err = k.mintAppToken(ctx)
	} else {
		f.g, f.err = k.fetchGrant(ctx, refused)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.inProgress = nil; f.err == nil && f.g.Access != k.current.Access {
		k.current, k.receivedAt = f.g, k.s.cfg.Clock.Now()
	}
	close(f.done)
}

// fetchGrant reads the grant from the database. If it is refused or expires within renewBefore, it is renewed; if
// another process holds the lease, fetchGrant polls.
func (k *grantTokens) fetchGrant(ctx context.Context, refused string) (adapter.Grant, error) {
	for {
		g, err := k.s.grantOf(ctx, k.s.cfg.DB.Read(ctx), k.c)
		switch {
		case db.IsNone(err):
			return g, fmt.Errorf("%w: nobody has agreed to the connection yet", adapter.ErrAuth)
		case err != nil:
			return g, err
		case g.Refused != "":
			return g, fmt.Errorf("%w: %s", adapter.ErrAuth, g.Refused)
		}
		if g.Access != refused && (g.Expires.IsZero() || g.Expires.Sub(k.s.cfg.Clock.Now()) > renewBefore) {
			return g, nil
		}
		if g.Refresh == "" {
			return g, fmt.Errorf("%w: the token has expired, and the vendor issued no refresh token", adapter.ErrAuth)
		}
		ours, err := k.s.leaseRenewal(ctx, k.c, g.Version)
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
func (k *grantTokens) refreshGrant(ctx context.Context, old adapter.Grant) (adapter.Grant, error) {
	client := k.d.OAuthClient(k.s.env, k.p, old)
	t, err := client.TokenSource(k.s.tokenContext(ctx), &oauth2.Token{RefreshToken: old.Refresh}).Token()
	if err != nil {
		why := adapter.PermanentRefusal(err)
		if why != "" {
			k.s.cfg.Log.Warn("a connected system refuses to renew our token: consent is required again", "org", k.c.org, "connection", k.c.ID,
				"provider", k.c.Provider, "err", why)
		}
		return old, errors.Join(adapter.TokenError(err), k.s.releaseRenewal(context.WithoutCancel(ctx), k.c, old.Version, why))
	}
	g := old
	if err := k.d.ApplyToken(k.s.env, &g, t, nil); err != nil {
		return old, err
	}
	return g, k.s.cfg.DB.TxContext(context.WithoutCancel(ctx), func(ctx context.Context, tx db.Querier) error {
		return k.s.putGrant(ctx, tx,
			k.c, g)
	})
}

// mintAppToken requests a token for the app itself (RFC 6749 §4.4). It is not stored: the app can request another.
func (k *grantTokens) mintAppToken(ctx context.Context) (g adapter.Grant, err error) {
	c := k.d.OAuthClient(k.s.env, k.p, g)
	app := clientcredentials.Config{ClientID: c.ClientID, ClientSecret: c.ClientSecret, TokenURL: c.Endpoint.TokenURL, Scopes: c.Scopes,
		AuthStyle: c.Endpoint.AuthStyle}
	t, err := app.Token(k.s.tokenContext(ctx))
	if err != nil {
		if why := adapter.PermanentRefusal(err); why != "" {
			return g, fmt.Errorf("%w: %s", adapter.ErrAuth, why)
		}
		return g, adapter.TokenError(err)
	}
	return g, k.d.ApplyToken(k.s.env, &g, t, nil)
}

// tokenContext makes token requests use the client with the egress guard.
func (s *Service) tokenContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, s.env.Lookups)
}
