package auth

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"soniq/internal/platform/db"
)

// Client is an OAuth client. Clients are public: none has a secret.
type Client struct {
	ID        string
	Name      string
	URI       string // web page; "": none
	Redirects []string
	Origin    ClientOrigin
}

// ClientOrigin is how a client became known.
type ClientOrigin string

// A client is built in, or registered dynamically (RFC 7591), or described by the document at the URL that is its id.
const (
	BuiltIn    ClientOrigin = "known"
	Registered ClientOrigin = "registered"
	Described  ClientOrigin = "described"
)

// FixedClient returns the id of the built-in public client, which assistants may use without registration.
func (s *Service) FixedClient() string { return s.brand + "-assistant" }

// client returns a client by id. If there is none, the error is an *OAuthError.
func (o *OAuth) client(ctx context.Context, id string) (Client, error) {
	switch {
	case id == o.keys.FixedClient():
		return Client{ID: id, Name: id, Redirects: o.cfg.Callbacks, Origin: BuiltIn}, nil
	case strings.Contains(id, "://"):
		return o.clientFromDocument(ctx, id)
	}
	c, err := clientByID(ctx, o.keys.db.Read(ctx), id)
	if db.IsNone(err) {
		return c, oauthError("invalid_client", "this client is not known here")
	}
	return c, err
}

// allowsRedirect reports whether the client may use a redirect URI.
func (c Client) allowsRedirect(to string) bool {
	if redirectFault(to) != "" {
		return false
	}
	if c.Origin == BuiltIn && IsLoopback(to) {
		u, err := url.Parse(to)
		return err == nil && slices.Contains(loopbackPaths, u.Path) && u.RawQuery == ""
	}
	return slices.ContainsFunc(c.Redirects, func(known string) bool { return matchRedirect(known, to) })
}

// loopbackPaths are the paths at which programs on the user's own machine wait for the response.
var loopbackPaths = []string{"", "/", "/callback", "/oauth/callback", "/oauth/callback/debug", "/auth/callback"}

// IsLoopback reports whether a URI is on the machine of the browser. The host of an app's scheme says nothing about that.
func IsLoopback(to string) bool {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	if u.Hostname() == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(u.Hostname())
	return err == nil && a.IsLoopback()
}

// matchRedirect compares redirect URIs exactly, except the port on the loopback interface: programs choose it when
// they start to listen (RFC 8252 §7.3).
func matchRedirect(known, to string) bool {
	if known == to {
		return true
	}
	a, err1 := url.Parse(known)
	b, err2 := url.Parse(to)
	if err1 != nil || err2 != nil || !IsLoopback(known) || !IsLoopback(to) || a.Scheme != "http" || b.Scheme != "http" {
		return false
	}
	a.Host, b.Host = withoutPort(a.Host), withoutPort(b.Host)
	return a.String() == b.String()
}

func withoutPort(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return strings.Trim(host, "[]")
}

func insertClient(ctx context.Context, q db.Querier, c Client, at db.Time) error {
	const text = `INSERT INTO oauth_clients (id, name, uri, redirect_uris, created_at, used_at) VALUES ($1, $2, $3, $4, $5, $5)`
	_, err := q.Exec(ctx, text, c.ID, c.Name, c.URI, db.AsJSON(c.Redirects), at)
	return err
}

func clientByID(ctx context.Context, q db.Querier, id string) (Client, error) {
	c := Client{Origin: Registered}
	var redirects db.JSON[[]string]
	err := q.QueryRow(ctx, `SELECT id, name, uri, redirect_uris FROM oauth_clients WHERE id = $1`, id).Scan(&c.ID, &c.Name, &c.URI,
		&redirects)
	c.Redirects = redirects.V
	return c, err
}

func setClientUsed(ctx context.Context, q db.Querier, id string, at db.Time) error {
	_, err := q.Exec(ctx, `UPDATE oauth_clients SET used_at = $2 WHERE id = $1`, id, at)
	return err
}
