package mcpbridge

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Limits of one request to the server, and of the login of a person.
const (
	requestTimeout = 20 * time.Second
	loginTimeout   = 10 * time.Minute
)

// FixedClient is the OAuth client that every server knows without registration.
const FixedClient = "soniq-assistant"

// Login is the OAuth 2.1 login of a person, with PKCE and a redirect to this machine (RFC 8252). It is safe for
// concurrent use by several goroutines and processes.
type Login struct {
	URL    *url.URL
	Client *http.Client
	Store  *Store
}

// NewLogin returns the login to the tool server at an address.
func NewLogin(address *url.URL) (*Login, error) {
	s, err := StoreOf(address)
	if err != nil {
		return nil, err
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Login{address, &http.Client{CheckRedirect: stay}, s}, nil
}

// LoginOptions are the options of LogIn.
type LoginOptions struct {
	Scopes  string // separated by spaces; "" for those the server offers
	Client  string // "" for FixedClient
	Port    int    // of the callback server; 0: any
	Browser bool   // open a browser if there is one
	In      io.Reader
	Print   func(string)
}

// LogIn runs the authorization code flow with a browser and stores the credentials. It revokes the credentials of an
// earlier login.
func (l *Login) LogIn(ctx context.Context, w LoginOptions) (*Credentials, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, loginTimeout, errors.New("nobody logged in within ten minutes"))
	defer cancel()
	f, err := l.discover(ctx)
	if err != nil {
		return nil, err
	}
	if w.Client == "" {
		w.Client = FixedClient
	}
	if w.Scopes == "" {
		w.Scopes = f.scope
	}
	state, verifier := randomText(), randomText()
	a, err := listen(w.Port, state, f)
	if err != nil {
		return nil, err
	}
	defer a.close()
	l.show(w, authorizeURL(w, f, a.redirect, state, verifier))
	go a.readPasted(w.In)
	code, done, err := a.wait(ctx)
	if err != nil {
		return nil, err
	}
	k, err := l.redeem(ctx, f, url.Values{"grant_type": {"authorization_code"}, "code": {code}, "client_id": {w.Client},
		"redirect_uri": {a.redirect}, "code_verifier": {verifier}, "resource": {f.resource}})
	done(err)
	return k, err
}

func (l *Login) show(w LoginOptions, where string) {
	w.Print("Open this address in a browser to log in:\n\n  " + where + "\n")
	if w.Browser && openBrowser(where) {
		w.Print("A browser should open by itself.")
	}
	w.Print("Where the browser is on another machine, copy the address you are led to at last, and paste it here.")
}

// authorizeURL returns the address that the browser opens.
func authorizeURL(w LoginOptions, f authServer, redirect, state, verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{"response_type": {"code"}, "client_id": {w.Client}, "redirect_uri": {redirect}, "state": {state},
		"resource": {f.resource}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}}
	if w.Scopes != "" {
		q.Set("scope", w.Scopes)
	}
	if strings.Contains(f.server.Authorize, "?") {
		return f.server.Authorize + "&" + q.Encode()
	}
	return f.server.Authorize + "?" + q.Encode()
}

func randomText() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// tokenResponse is the response of the token endpoint (RFC 6749 §5).
type tokenResponse struct {
	Access      string `json:"access_token"`
	Type        string `json:"token_type"`
	Refresh     string `json:"refresh_token"`
	Scope       string `json:"scope"`
	Expires     int64  `json:"expires_in"`
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// update returns credentials with the tokens of the response. Members that the response leaves out stay.
func (g tokenResponse) update(k Credentials) (Credentials, error) {
	if g.Access == "" || !strings.EqualFold(g.Type, "bearer") {
		return k, errors.New("the server gave no token")
	}
	k.Access = g.Access
	if g.Refresh != "" {
		k.Refresh = g.Refresh
	}
	if g.Scope != "" {
		k.Scope = g.Scope
	}
	if g.Expires <= 0 {
		g.Expires = 3600
	}
	k.ExpiresAt = now().Add(time.Duration(g.Expires) * time.Second)
	return k, nil
}

// errorText returns the reason of the server for a response without a token.
func (g tokenResponse) errorText(status int) string {
	if g.Error == "" {
		return fmt.Sprintf("HTTP %d", status)
	}
	return strings.TrimSuffix(g.Error+": "+g.Description, ": ")
}

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// redeem exchanges the authorization code for tokens and stores them.
func (l *Login) redeem(ctx context.Context, f authServer, form url.Values) (*Credentials, error) {
	var g tokenResponse
	status, err := l.fetchJSON(ctx, f.server.Token, form, "", &g)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, errors.New("the server refused: " + g.errorText(status))
	}
	k, err := g.update(Credentials{URL: l.URL.String(), Resource: f.resource, Issuer: f.server.Issuer, ClientID: form.Get("client_id"),
		TokenAt: f.server.Token, RevokeAt: f.server.Revoke, IntrospectAt: f.server.Introspect, LoggedInAt: now()})
	if err != nil {
		return nil, err
	}
	var before *Credentials
	err = l.Store.withLock(ctx, func() error {
		before, _ = l.Store.Read()
		return l.Store.write(k)
	})
	if err == nil && before != nil {
		_ = l.revoke(ctx, before) // the earlier login is replaced
	}
	return &k, err
}
