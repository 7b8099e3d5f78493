// Package egress makes requests to addresses that customers name, without letting them reach the inside of the
// network: the address is checked after resolution and before connecting, so that no name, redirect, proxy or notation
// leads around the check.
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

// A Guard decides which addresses may be reached. It is safe for concurrent use.
type Guard struct {
	allow    []netip.Prefix
	resolver *net.Resolver // nil: the system's
}

// New makes a guard. The operator's allow list opens targets that are not public, also by http.
func New(allow []netip.Prefix) *Guard {
	g := &Guard{allow: make([]netip.Prefix, len(allow))}
	for i, p := range allow {
		g.allow[i] = unmapped(p)
	}
	return g
}

// unmapped turns ::ffff:10.0.0.0/104 into 10.0.0.0/8, the form in which addresses are compared.
func unmapped(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96).Masked()
	}
	return p.Masked()
}

// ErrBlocked says that an address may not be reached.
var ErrBlocked = errors.New("target address is not allowed")

// ErrTooLarge says that a response is larger than the client's limit.
var ErrTooLarge = errors.New("response is too large")

// Limits bound a client's requests.
type Limits struct {
	Connect time.Duration // resolution and connection; 5 s if zero
	Total   time.Duration // everything, the body included; 15 s if zero. A shorter context wins
	Body    int64         // bytes of response body; 1 MiB if zero
	Idle    int           // connections kept open per host; 8 if zero
	TLS     *tls.Config   // for receivers with certificates of their own; nil: the system's authorities
}

func (l Limits) filled() Limits {
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

// Client makes a client that reaches only what the guard allows. It follows no redirect (the caller sees the 3xx),
// uses no proxy, refuses credentials in addresses, and fails with ErrTooLarge when a body goes beyond the limit.
func (g *Guard) Client(l Limits) *http.Client {
	l = l.filled()
	return &http.Client{
		Timeout:       l.Total,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &transport{guard: g, limit: l.Body,
			secure: g.roundTripper(l, g.reachable), plain: g.roundTripper(l, g.listed)},
	}
}

func (g *Guard) roundTripper(l Limits, allowed func(netip.Addr) error) *http.Transport {
	d := &net.Dialer{Timeout: l.Connect, KeepAlive: 30 * time.Second, Resolver: g.resolver,
		Control: func(_, address string, _ syscall.RawConn) error { return control(address, allowed) }}
	return &http.Transport{
		Proxy:                  nil, // a proxy would connect where the guard cannot look
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

// control is called with the address about to be connected to: what a name resolved to a moment ago.
func control(address string, allowed func(netip.Addr) error) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s", ErrBlocked, address)
	}
	return allowed(ap.Addr())
}

// reachable is the rule for https.
func (g *Guard) reachable(a netip.Addr) error {
	a = a.Unmap().WithZone("")
	if g.allows(a) || Public(a) {
		return nil
	}
	return fmt.Errorf("%w: %s is not a public address; the operator can open it with --allow-targets %s", ErrBlocked, a, a)
}

// listed is the rule for http: only targets the operator named.
func (g *Guard) listed(a netip.Addr) error {
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

// RoundTrip sends one request, if its address may be used at all.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
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
		return response, nil // a connection, which has no length: who asked for it bounds what it reads
	}
	response.Body = &limited{from: response.Body, left: t.limit}
	return response, nil
}

// CloseIdleConnections lets http.Client do so.
func (t *transport) CloseIdleConnections() {
	t.secure.CloseIdleConnections()
	t.plain.CloseIdleConnections()
}

// limited reads at most so many bytes.
type limited struct {
	from io.ReadCloser
	left int64
}

func (l *limited) Read(b []byte) (int, error) {
	if l.left < 0 {
		return 0, ErrTooLarge
	}
	if int64(len(b)) > l.left+1 {
		b = b[:l.left+1] // one more, to tell a body that fits from one that does not
	}
	n, err := l.from.Read(b)
	if l.left -= int64(n); l.left < 0 {
		return n - 1, ErrTooLarge
	}
	return n, err
}

func (l *limited) Close() error { return l.from.Close() }

// Resolve is the check a registration may add to Check: it resolves the host and returns an error when no address of it
// may be reached. What counts is still the check at connect time.
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
		if err = g.reachable(a); err == nil {
			return nil
		}
	}
	return err
}
