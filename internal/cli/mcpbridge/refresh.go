package mcpbridge

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// LoginRequired is the error for a login that is missing or has ended: the person has to log in.
type LoginRequired struct{ Reason string }

// Error returns the reason.
func (o *LoginRequired) Error() string { return o.Reason }

// Credentials returns the stored credentials with a token that is valid for at least a moment. The error is a
// *LoginRequired if there are none.
func (l *Login) Credentials(ctx context.Context) (*Credentials, error) {
	k, err := l.Store.Read()
	switch {
	case err != nil:
		return nil, err
	case k == nil:
		return nil, &LoginRequired{"nobody is logged in"}
	case !k.expiresSoon():
		return k, nil
	}
	next, err := l.Renew(ctx, k.Access)
	if err != nil && time.Now().Before(k.ExpiresAt) {
		return k, nil // the token is still valid for less than a minute
	}
	return next, err
}

// Renew returns credentials with another token than rejected. Of several processes one refreshes the token; the
// others read the result from the file.
func (l *Login) Renew(ctx context.Context, useless string) (next *Credentials, err error) {
	err = l.Store.withLock(ctx, func() error {
		k, err := l.Store.Read()
		if err != nil {
			return err
		}
		if k == nil {
			return &LoginRequired{"nobody is logged in"}
		}
		if next = k; k.Access != useless && !k.expiresSoon() {
			return nil
		}
		next, err = l.refresh(context.WithoutCancel(ctx),
			*k) // not cancelled, because the response has the next refresh token: without it the login is lost
		return err
	})
	return next, err
}

func (l *Login) refresh(ctx context.Context, k Credentials) (*Credentials, error) {
	var g tokenResponse
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {k.Refresh}, "client_id": {k.ClientID}, "resource": {k.Resource}}
	status, err := l.fetchJSON(ctx, k.TokenAt, form, "", &g)
	switch {
	case err != nil:
		return nil, err
	case status == http.StatusBadRequest || status == http.StatusUnauthorized:
		return nil, &LoginRequired{"the login is over (" + g.errorText(status) + ")"}
	case status != http.StatusOK:
		return nil, errors.New("the login could not be renewed: " + g.errorText(status))
	}
	next, err := g.update(k)
	if err != nil {
		return nil, err
	}
	return &next, l.Store.write(next)
}

// revoke revokes the refresh token (RFC 7009). The server ends all tokens of the same login.
func (l *Login) revoke(ctx context.Context, k *Credentials) error {
	var g tokenResponse
	form := url.Values{"token": {k.Refresh}, "token_type_hint": {"refresh_token"}, "client_id": {k.ClientID}}
	status, err := l.fetchJSON(ctx, k.RevokeAt, form, "", &g)
	if err == nil && status != http.StatusOK {
		err = errors.New("the server did not revoke it: " + g.errorText(status))
	}
	return err
}

// LogOut revokes the tokens and deletes the credentials. was is false if there were no credentials.
func (l *Login) LogOut(ctx context.Context) (was bool, err error) {
	err = l.Store.withLock(ctx, func() error {
		k, err := l.Store.Read()
		if err != nil || k == nil {
			return err
		}
		was = true
		if err := l.revoke(ctx, k); err != nil {
			return err
		}
		return l.Store.delete()
	})
	return was, err
}

// TokenInfo is the description of a token by the server (RFC 7662).
type TokenInfo struct {
	Active   bool   `json:"active"`
	Username string `json:"username"`
	Subject  string `json:"sub"`
	Org      string `json:"org_id"`
	Scope    string `json:"scope"`
	Expires  int64  `json:"exp"`
}

// Introspect returns the server's description of the token.
func (l *Login) Introspect(ctx context.Context) (a TokenInfo, err error) {
	k, err := l.Credentials(ctx)
	if err != nil {
		return a, err
	}
	if _, err := l.fetchJSON(ctx, k.IntrospectAt, url.Values{"token": {k.Access}}, k.Access, &a); err != nil {
		return a, err
	}
	if !a.Active {
		return a, &LoginRequired{"the login is over"}
	}
	return a, nil
}
