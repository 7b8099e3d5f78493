// Package resolve locates the servers of SIP requests by DNS (RFC 3263).
package resolve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"soniq/internal/protocol/sip/sipmsg"
)

// Locator: NAPTR, SRV, addresses, and which servers come first (RFC 3263 §4).

// Target is a next hop. Host may carry a port. Without one, SRV records or the default port of the transport decide
// (RFC 3263).
type Target struct {
	Host      string
	Transport sipmsg.Transport // empty: from the URI or by DNS
}

// Host is the server on whose behalf a Locator works.
type Host interface {
	// Elapsed returns the time since the server started.
	Elapsed() time.Duration
	// Go runs a lookup on a goroutine of its own. ctx ends when the server closes.
	Go(lookup func(ctx context.Context))
	// SendsTo reports whether a UDP socket of the server can send to an address.
	SendsTo(a netip.Addr) bool
}

// Targets decides which addresses the server may send requests to.
type Targets interface {
	// CheckTarget returns the reason why no request may be sent to an address, with the remedy, or nil.
	CheckTarget(a netip.AddrPort) error
}

// Config holds the dependencies of a Locator.
type Config struct {
	Host     Host
	Resolver Resolver // nil means the name servers of this machine
	Targets  Targets  // nil allows every address
}

// Locator locates the servers of a request. It caches the answers of DNS and stores the servers that failed.
type Locator struct {
	host    Host
	cache   *dnsCache
	targets Targets
	failed  failedTargets
}

// NewLocator returns a Locator.
func NewLocator(c Config) *Locator {
	if c.Resolver == nil {
		c.Resolver = NewResolver()
	}
	return &Locator{host: c.Host, cache: newDNSCache(c.Host, c.Resolver), targets: c.Targets}
}

// MarkFailed records that a server failed, so that others are tried first for a while.
func (l *Locator) MarkFailed(t sipmsg.Transport, a netip.AddrPort, now time.Duration) {
	l.failed.markFailed(t, a, now)
}

// Hop is one destination of a request. Name is the name that a TLS peer must prove: the name asked for, not the
// one that DNS returned (RFC 5922 §4).
type Hop struct {
	Transport sipmsg.Transport
	Addr      netip.AddrPort
	Name      string
}

// maxNextHops bounds how many destinations of one target are tried.
const maxNextHops = 16

// errNoAddress is returned if the name exists but has no usable address.
var errNoAddress = errors.New("no usable address")

// CheckTarget returns the reason why no request may be sent to an address, or nil.
func (l *Locator) CheckTarget(a netip.AddrPort) error {
	if l.targets == nil {
		return nil
	}
	return l.targets.CheckTarget(a)
}

// allowed returns the destinations that Targets allows. It fails if there is none.
func (l *Locator) allowed(all []Hop) (some []Hop, err error) {
	for _, h := range all {
		if refused := l.CheckTarget(h.Addr); refused != nil {
			err = refused
			continue
		}
		some = append(some, h)
	}
	if len(some) > 0 {
		err = nil
	}
	return some, err
}

// Hops returns the destinations of a request in the order of use (RFC 3263 §4). Those that failed recently
// come last. It leaves out addresses that Targets refuses, whatever DNS returned at other times.
func (l *Locator) Hops(ctx context.Context, t Target, uri sipmsg.URI) ([]Hop, error) {
	q, err := newResolveTarget(t, uri)
	if err != nil {
		return nil, err
	}
	all, err := l.lookupHops(ctx, q)
	if err != nil {
		return nil, err
	}
	if all, err = l.allowed(all); err != nil {
		return nil, fmt.Errorf("look up %s: %w", q.host, err)
	}
	all = slices.DeleteFunc(all, func(h Hop) bool { return h.Transport == sipmsg.UDP && !l.host.SendsTo(h.Addr.Addr()) })
	if len(all) == 0 {
		return nil, fmt.Errorf("look up %s: %w", q.host, errNoAddress)
	}
	all = all[:min(len(all), maxNextHops)]
	now := l.host.Elapsed()
	slices.SortStableFunc(all, func(a, b Hop) int {
		failedA, failedB := l.failed.recentlyFailed(a.Transport, a.Addr, now), l.failed.recentlyFailed(b.Transport, b.Addr, now)
		return cmp.Compare(boolRank(failedA), boolRank(failedB))
	})
	return all, nil
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// resolveTarget is the target of a resolution. transport "" and port 0 are left open.
type resolveTarget struct {
	host      string
	port      int
	transport sipmsg.Transport
	sips      bool
}

func newResolveTarget(t Target, uri sipmsg.URI) (resolveTarget, error) {
	g := resolveTarget{host: uri.Host, port: uri.Port, transport: t.Transport, sips: uri.Scheme == "sips"}
	if t.Host != "" {
		var ok bool
		if g.host, g.port, ok = sipmsg.SplitHostPort(t.Host); !ok {
			return g, fmt.Errorf("malformed next hop %q", t.Host)
		}
	}
	if t.Host == "" && g.transport == "" {
		g.transport = uri.Transport()
	}
	if g.sips && g.transport == "" {
		g.transport = sipmsg.TLS
	}
	if g.sips && !g.transport.IsEncrypted() {
		return g, fmt.Errorf("%s requires TLS and may not be sent over %s", uri, g.transport)
	}
	if g.transport.IsWebSocket() {
		return g, fmt.Errorf("%s is reachable only over a WebSocket connection that it opened", uri)
	}
	return g, nil
}

// lookupHops follows the steps of RFC 3263 §4: literal address or port, NAPTR, SRV.
func (l *Locator) lookupHops(ctx context.Context, g resolveTarget) ([]Hop, error) {
	if a, err := netip.ParseAddr(g.host); err == nil {
		return []Hop{g.hopAt(a, g.port)}, nil
	}
	if g.port != 0 {
		return l.hostHops(ctx, g, g.host, g.port)
	}
	names, err := l.srvNames(ctx, g)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		g.transport = n.transport
		all, found, err := l.srvHops(ctx, g, n.name)
		if err != nil || found {
			return all, err
		}
	}
	if len(names) > 1 {
		g.transport = "" // no SRV record for any transport: leave it open
	}
	return l.hostHops(ctx, g, g.host, 0)
}

// hopAt returns the destination of the target at an address.
func (g resolveTarget) hopAt(a netip.Addr, port int) Hop {
	if g.transport == "" {
		g.transport = sipmsg.UDP
	}
	if port == 0 {
		port = g.transport.DefaultPort()
	}
	return Hop{g.transport, netip.AddrPortFrom(a.Unmap(), uint16(port)), g.host}
}

// hostHops returns the destinations at one host.
func (l *Locator) hostHops(ctx context.Context, g resolveTarget, host string, port int) ([]Hop, error) {
	addrs, err := l.cache.addresses(ctx, host)
	if err == nil && len(addrs) == 0 {
		err = errNoAddress
	}
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", host, err)
	}
	var all []Hop
	for _, a := range addrs {
		all = append(all, g.hopAt(a, port))
	}
	return all, nil
}

// srvName is the name of SRV records and their transport.
type srvName struct {
	transport sipmsg.Transport
	name      string
}

// naptrTransports maps the usable NAPTR services (RFC 3263 §4.1).
var naptrTransports = map[string]sipmsg.Transport{"SIPS+D2T": sipmsg.TLS, "SIP+D2T": sipmsg.TCP, "SIP+D2U": sipmsg.UDP}

// srvPrefix is the prefix of a transport's SRV name (RFC 3263 §4.1).
var srvPrefix = map[sipmsg.Transport]string{sipmsg.TLS: "_sips._tcp.", sipmsg.TCP: "_sip._tcp.", sipmsg.UDP: "_sip._udp."}

// srvNames returns the SRV names to query: that of the given transport, that of the best NAPTR rule, or those of each
// transport in turn.
func (l *Locator) srvNames(ctx context.Context, g resolveTarget) ([]srvName, error) {
	if g.transport != "" {
		return []srvName{{g.transport, srvPrefix[g.transport] + g.host}}, nil
	}
	rules, err := l.cache.naptr(ctx, g.host)
	if err != nil {
		return nil, err
	}
	for _, r := range rules {
		kind, ok := naptrTransports[strings.ToUpper(r.Service)]
		if ok && strings.EqualFold(r.Flags, "s") && r.Replacement != "" {
			return []srvName{{kind, strings.TrimSuffix(r.Replacement, ".")}}, nil
		}
	}
	var names []srvName
	for _, t := range []sipmsg.Transport{sipmsg.UDP, sipmsg.TCP, sipmsg.TLS} {
		names = append(names, srvName{t, srvPrefix[t] + g.host})
	}
	return names, nil
}

// srvHops returns the destinations of an SRV name. found is false if it has no records.
func (l *Locator) srvHops(ctx context.Context, g resolveTarget, name string) (all []Hop, found bool, err error) {
	records, err := l.cache.srv(ctx, name)
	if err != nil || len(records) == 0 {
		return nil, false, err
	}
	for _, r := range orderSRV(slices.Clone(records)) {
		target := strings.TrimSuffix(r.Target, ".")
		if target == "" || r.Port == 0 {
			continue // RFC 2782: the service is not available here
		}
		some, hostErr := l.hostHops(ctx, g, target, int(r.Port))
		if hostErr != nil {
			err = hostErr // another target may be usable
		}
		if all = append(all, some...); len(all) >= maxNextHops {
			break
		}
	}
	if len(all) > 0 {
		err = nil
	} else if err == nil {
		err = fmt.Errorf("look up %s: %w", name, errNoAddress)
	}
	return all, true, err
}

// orderSRV orders servers by priority, and randomly by weight within one priority (RFC 2782).
func orderSRV(all []SRV) []SRV {
	slices.SortStableFunc(all, func(a, b SRV) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(boolRank(a.Weight > 0), boolRank(b.Weight > 0)))
	})
	for i := range all {
		sum, end := 0, i
		for end < len(all) && all[end].Priority == all[i].Priority {
			sum += int(all[end].Weight)
			end++
		}
		pick := rand.N(sum + 1)
		for j := i; j < end; j++ {
			if pick -= int(all[j].Weight); pick <= 0 {
				chosen := all[j]
				copy(all[i+1:j+1], all[i:j])
				all[i] = chosen
				break
			}
		}
	}
	return all
}
