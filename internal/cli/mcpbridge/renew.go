package mcpbridge

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// Over says that the person has to log in again.
type Over struct{ Why string }

// Error makes it an error.
func (o *Over) Error() string { return o.Why }

// Kept is what a person gave, with a token that lasts for a moment; the error is an *Over where nobody is logged in.
func (l *Login) Kept(ctx context.Context) (*Kept, error) {
	k, err := l.Store.Read()
	switch {
	case err != nil:
		return nil, err
	case k == nil:
		return nil, &Over{"nobody is logged in"}
	case !k.stale():
		return k, nil
	}
	next, err := l.Renew(ctx, k.Access)
	if err != nil && time.Now().Before(k.ExpiresAt) {
		return k, nil // good for a moment still
	}
	return next, err
}

// Renew gives what is kept, with another token than the one that is of no use any more. Of several bridges one asks for it; the others
// find it in the file.
func (l *Login) Renew(ctx context.Context, useless string) (next *Kept, err error) {
	err = l.Store.locked(ctx, func() error {
		k, err := l.Store.Read()
		if err != nil {
			return err
		}
		if k == nil {
			return &Over{"nobody is logged in"}
		}
		if next = k; k.Access != useless && !k.stale() {
			return nil
		}
		next, err = l.refresh(context.WithoutCancel(ctx), *k) // an answer that nobody waits for would be lost, and the login with it
		return err
	})
	return next, err
}

func (l *Login) refresh(ctx context.Context, k Kept) (*Kept, error) {
	var g granted
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {k.Refresh}, "client_id": {k.ClientID}, "resource": {k.Resource}}
	status, err := l.ask(ctx, k.TokenAt, form, "", &g)
	switch {
	case err != nil:
		return nil, err
	case status == http.StatusBadRequest || status == http.StatusUnauthorized:
		return nil, &Over{"the login is over (" + g.refusal(status) + ")"}
	case status != http.StatusOK:
		return nil, errors.New("the login could not be renewed: " + g.refusal(status))
	}
	next, err := g.into(k)
	if err != nil {
		return nil, err
	}
	return &next, l.Store.write(next)
}

// revoke gives tokens back: those that came of the same login end too.
func (l *Login) revoke(ctx context.Context, k *Kept) error {
	var g granted
	form := url.Values{"token": {k.Refresh}, "token_type_hint": {"refresh_token"}, "client_id": {k.ClientID}}
	status, err := l.ask(ctx, k.RevokeAt, form, "", &g)
	if err == nil && status != http.StatusOK {
		err = errors.New("the server did not revoke it: " + g.refusal(status))
	}
	return err
}

// End gives back what a person gave, and forgets it; was is false where nobody was logged in.
func (l *Login) End(ctx context.Context) (was bool, err error) {
	err = l.Store.locked(ctx, func() error {
		k, err := l.Store.Read()
		if err != nil || k == nil {
			return err
		}
		was = true
		if err := l.revoke(ctx, k); err != nil {
			return err
		}
		return l.Store.forget()
	})
	return was, err
}

// An About is what the server says about a token.
type About struct {
	Active   bool   `json:"active"`
	Username string `json:"username"`
	Subject  string `json:"sub"`
	Org      string `json:"org_id"`
	Scope    string `json:"scope"`
	Expires  int64  `json:"exp"`
}

// Who asks the server who is logged in.
func (l *Login) Who(ctx context.Context) (a About, err error) {
	k, err := l.Kept(ctx)
	if err != nil {
		return a, err
	}
	if _, err := l.ask(ctx, k.IntrospectAt, url.Values{"token": {k.Access}}, k.Access, &a); err != nil {
		return a, err
	}
	if !a.Active {
		return a, &Over{"the login is over"}
	}
	return a, nil
}
