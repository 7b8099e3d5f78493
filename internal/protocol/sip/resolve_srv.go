package sip

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
)

// Locating SIP servers (RFC 3263): NAPTR, SRV, addresses.

// nextHop is one destination of a request. name is the name that a TLS peer must prove: the name asked for, not the
// one that DNS returned (RFC 5922 §4).
type nextHop struct {
	transport Transport
	addr      netip.AddrPort
	name      string
}

func (s *Server) flowToHop(h nextHop) flow { return s.flowTo(h.transport, h.addr, h.name) }

// maxNextHops bounds how many destinations of one target are tried.
const maxNextHops = 16

// resolveFlow returns the flow to the best destination of a next hop.
func (s *Server) resolveFlow(ctx context.Context, t Target, uri URI) (flow, error) {
	all, err := s.resolveHops(ctx, t, uri)
	if err != nil {
		return flow{}, err
	}
	return s.flowToHop(all[0]), nil
}

// errNoAddress is returned if the name exists but has no usable address.
var errNoAddress = errors.New("no usable address")

// resolveHops returns the destinations of a request in the order of use (RFC 3263 §4). Those that failed recently
// come last.
func (s *Server) resolveHops(ctx context.Context, t Target, uri URI) ([]nextHop, error) {
	q, err := newResolveTarget(t, uri)
	if err != nil {
		return nil, err
	}
	all, err := s.lookupHops(ctx, q)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(h nextHop) bool { return h.transport == UDP && s.socketFor(h.addr.Addr()) == nil })
	if len(all) == 0 {
		return nil, fmt.Errorf("look up %s: %w", q.host, errNoAddress)
	}
	all = all[:min(len(all), maxNextHops)]
	now := s.clock()
	slices.SortStableFunc(all, func(a, b nextHop) int {
		return cmp.Compare(boolRank(s.failedTargets.recentlyFailed(a.transport, a.addr, now)), boolRank(s.failedTargets.recentlyFailed(b.transport, b.addr, now)))
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
	transport Transport
	sips      bool
}

func newResolveTarget(t Target, uri URI) (resolveTarget, error) {
	g := resolveTarget{host: uri.Host, port: uri.Port, transport: t.Transport, sips: uri.Scheme == "sips"}
	if t.Host != "" {
		var ok bool
		if g.host, g.port, ok = splitHostPort(t.Host); !ok {
			return g, fmt.Errorf("malformed next hop %q", t.Host)
		}
	}
	if t.Host == "" && g.transport == "" {
		g.transport = uri.transport()
	}
	if g.sips && g.transport == "" {
		g.transport = TLS
	}
	if g.sips && !g.transport.isEncrypted() {
		return g, fmt.Errorf("%s requires TLS and may not be sent over %s", uri, g.transport)
	}
	if g.transport.isWebSocket() {
		return g, fmt.Errorf("%s is reachable only over a WebSocket connection that it opened", uri)
	}
	return g, nil
}

// lookupHops follows the steps of RFC 3263 §4: literal address or port, NAPTR, SRV.
func (s *Server) lookupHops(ctx context.Context, g resolveTarget) ([]nextHop, error) {
	if a, err := netip.ParseAddr(g.host); err == nil {
		return []nextHop{g.hopAt(a, g.port)}, nil
	}
	if g.port != 0 {
		return s.hostHops(ctx, g, g.host, g.port)
	}
	names, err := s.srvNames(ctx, g)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		g.transport = n.transport
		all, found, err := s.srvHops(ctx, g, n.name)
		if err != nil || found {
			return all, err
		}
	}
	if len(names) > 1 {
		g.transport = "" // no SRV record for any transport: leave it open
	}
	return s.hostHops(ctx, g, g.host, 0)
}

// hopAt returns the destination of the target at an address.
func (g resolveTarget) hopAt(a netip.Addr, port int) nextHop {
	if g.transport == "" {
		g.transport = UDP
	}
	if port == 0 {
		port = g.transport.defaultPort()
	}
	return nextHop{g.transport, netip.AddrPortFrom(a.Unmap(), uint16(port)), g.host}
}

// hostHops returns the destinations at one host.
func (s *Server) hostHops(ctx context.Context, g resolveTarget, host string, port int) ([]nextHop, error) {
	addrs, err := s.dnsCache.addresses(ctx, host)
	if err == nil && len(addrs) == 0 {
		err = errNoAddress
	}
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", host, err)
	}
	var all []nextHop
	for _, a := range addrs {
		all = append(all, g.hopAt(a, port))
	}
	return all, nil
}

// srvName is the name of SRV records and their transport.
type srvName struct {
	transport Transport
	name      string
}

// naptrTransports maps the usable NAPTR services (RFC 3263 §4.1).
var naptrTransports = map[string]Transport{"SIPS+D2T": TLS, "SIP+D2T": TCP, "SIP+D2U": UDP}

// srvPrefix is the prefix of a transport's SRV name (RFC 3263 §4.1).
var srvPrefix = map[Transport]string{TLS: "_sips._tcp.", TCP: "_sip._tcp.", UDP: "_sip._udp."}

// srvNames returns the SRV names to query: that of the given transport, that of the best NAPTR rule, or those of each
// transport in turn.
func (s *Server) srvNames(ctx context.Context, g resolveTarget) ([]srvName, error) {
	if g.transport != "" {
		return []srvName{{g.transport, srvPrefix[g.transport] + g.host}}, nil
	}
	rules, err := s.dnsCache.naptr(ctx, g.host)
	if err != nil {
		return nil, err
	}
	for _, r := range rules {
		kind, ok := naptrTransports[strings.ToUpper(r.Service)]
		if ok && strings.EqualFold(r.Flags, "s") && r.Replacement != "" {
			return []srvName{{kind, strings.TrimSuffix(r.Replacement, ".")}}, nil
		}
	}
	return []srvName{{UDP, srvPrefix[UDP] + g.host}, {TCP, srvPrefix[TCP] + g.host}, {TLS, srvPrefix[TLS] + g.host}}, nil
}

// srvHops returns the destinations of an SRV name. found is false if it has no records.
func (s *Server) srvHops(ctx context.Context, g resolveTarget, name string) (all []nextHop, found bool, err error) {
	records, err := s.dnsCache.srv(ctx, name)
	if err != nil || len(records) == 0 {
		return nil, false, err
	}
	for _, r := range orderSRV(slices.Clone(records)) {
		target := strings.TrimSuffix(r.Target, ".")
		if target == "" || r.Port == 0 {
			continue // RFC 2782: the service is not available here
		}
		some, hostErr := s.hostHops(ctx, g, target, int(r.Port))
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
