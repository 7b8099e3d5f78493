// Package egress makes requests to addresses set by customers, and protects the internal network (SSRF). The address
// is checked after resolution and before the connection, so that names, redirects, proxies and notations cannot
// bypass the check.
package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// Guard decides which addresses are allowed. It is safe for concurrent use.
type Guard struct {
	allow    []netip.Prefix
	resolver *net.Resolver // nil: the system's resolver
	held     error         // reason why nothing is connected; nil: connections are opened
}

// New returns a guard. The operator's allow list permits targets that are not public, also with http.
func New(allow []netip.Prefix) *Guard {
	g := &Guard{allow: make([]netip.Prefix, len(allow))}
	for i, p := range allow {
		g.allow[i] = unmapped(p)
	}
	return g
}

// NewHeld returns a guard that opens no connection, for the reason held. It judges addresses as the guard of New does. A nil reason
// makes it the guard of New.
func NewHeld(allow []netip.Prefix, held error) *Guard {
	g := New(allow)
	g.held = held
	return g
}

// unmapped converts ::ffff:10.0.0.0/104 to 10.0.0.0/8, the form used for comparison.
func unmapped(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96).Masked()
	}
	return p.Masked()
}

// ErrBlocked is returned if an address is not allowed.
var ErrBlocked = errors.New("target address is not allowed")

// ErrTooLarge is returned if a response exceeds the client's limit.
var ErrTooLarge = errors.New("response is too large")

// Limits are the limits of a client.
type Limits struct {
	Connect time.Duration // resolution and connection; 5 s if zero
	Total   time.Duration // whole request including the body; 15 s if zero; a shorter context has priority
	Body    int64         // bytes of the response body; 1 MiB if zero
	Idle    int           // idle connections per host; 8 if zero
	TLS     *tls.Config   // for receivers with private certificate authorities; nil: the system's authorities
}

func (l Limits) withDefaults() Limits {
	if l.Connect == 0 {
		l.Connect = 5 * time.Second
	}
	if l.Total == 0 {
		l.Total = 15 * time.Second
	}
	if l.Body == 0 {
		l.Body = 1 << 20
	}
	if l.Idle == 0 {
		l.Idle = 8
	}
	return l
}

// Client returns an HTTP client that connects to allowed addresses only. It does not follow redirects (the caller gets the 3xx), uses no
// proxy, and refuses credentials in URLs. It fails with ErrTooLarge if a body exceeds the limit.
func (g *Guard) Client(l Limits) *http.Client {
	l = l.withDefaults()
	return &http.Client{
		Timeout:       l.Total,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &transport{guard: g, limit: l.Body,
			secure: g.roundTripper(l, g.allowedForHTTPS), plain: g.roundTripper(l, g.allowedForHTTP)},
	}
}

func (g *Guard) roundTripper(l Limits, allowed func(netip.Addr) error) *http.Transport {
	d := &net.Dialer{Timeout: l.Connect, KeepAlive: 30 * time.Second, Resolver: g.resolver,
		Control: func(_, address string, _ syscall.RawConn) error { return control(address, allowed) }}
	return &http.Transport{
		Proxy:                  nil, // the guard cannot check connections of a proxy
		DialContext:            d.DialContext,
		TLSClientConfig:        l.TLS,
		TLSHandshakeTimeout:    l.Connect,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConns:           0,
		MaxIdleConnsPerHost:    l.Idle,
		IdleConnTimeout:        60 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// control checks the address of a connection before it is opened: the result of the resolution.
func control(address string, allowed func(netip.Addr) error) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s", ErrBlocked, address)
	}
	return allowed(ap.Addr())
}

// CheckAddress returns the reason why nothing may be sent to an address, or nil: it must be public, or on the
// operator's list.
func (g *Guard) CheckAddress(a netip.Addr) error { return g.allowedForHTTPS(a) }

// allowedForHTTPS checks an address for https.
func (g *Guard) allowedForHTTPS(a netip.Addr) error {
	a = a.Unmap().WithZone("")
	if g.allows(a) || Public(a) {
		return nil
	}
	return fmt.Errorf("%w: %s is not a public address; the operator can open it with --allow-targets %s", ErrBlocked, a, a)
}

// allowedForHTTP checks an address for http: only targets on the operator's list are allowed.
func (g *Guard) allowedForHTTP(a netip.Addr) error {
	a = a.Unmap().WithZone("")
	if g.allows(a) {
		return nil
	}
	return fmt.Errorf("%w: %s may be reached by https only, unless the operator opens it with --allow-targets %s", ErrBlocked, a, a)
}

func (g *Guard) allows(a netip.Addr) bool {
	for _, p := range g.allow {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

type transport struct {
	guard         *Guard
	limit         int64
	secure, plain *http.Transport
}

// RoundTrip implements http.RoundTripper. It sends a request if its URL is allowed.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.guard.held != nil {
		return nil, t.guard.held
	}
	if err := t.guard.CheckURL(r.URL); err != nil {
		return nil, err
	}
	on := t.secure
	if r.URL.Scheme == "http" {
		on = t.plain
	}
	response, err := on.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusSwitchingProtocols && r.Header.Get("Upgrade") != "" {
		return response, nil // an upgraded connection has no length; the caller limits its reads
	}
	response.Body = &limitedBody{from: response.Body, left: t.limit}
	return response, nil
}

// CloseIdleConnections is called by http.Client.
func (t *transport) CloseIdleConnections() {
	t.secure.CloseIdleConnections()
	t.plain.CloseIdleConnections()
}

// limitedBody limits the bytes of a body.
type limitedBody struct {
	from io.ReadCloser
	left int64
}

func (l *limitedBody) Read(b []byte) (int, error) {
	if l.left < 0 {
		return 0, ErrTooLarge
	}
	if int64(len(b)) > l.left+1 {
		b = b[:l.left+1] // one byte more, to detect a longer body
	}
	n, err := l.from.Read(b)
	if l.left -= int64(n); l.left < 0 {
		return n - 1, ErrTooLarge
	}
	return n, err
}

func (l *limitedBody) Close() error { return l.from.Close() }

// Resolve resolves the host, and returns an error if none of its addresses is allowed. A registration may call it in
// addition to Check. The decisive check is the one at connection time.
func (g *Guard) Resolve(ctx context.Context, host string) error {
	resolver := g.resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	addresses, err := resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return fmt.Errorf("resolve %s: %w", host, err)
	}
	for _, a := range addresses {
		if err = g.allowedForHTTPS(a); err == nil {
			return nil
		}
	}
	return err
}
