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
type hop struct {
	kind Transport
	addr netip.AddrPort
	name string
}

func (s *Server) hopFlow(h hop) flow { return s.to(h.kind, h.addr, h.name) }

// maxNextHops bounds how many destinations of one target are tried.
const maxHops = 16

// resolveFlow returns the flow to the best destination of a next hop.
func (s *Server) resolve(ctx context.Context, t Target, uri URI) (flow, error) {
	all, err := s.locate(ctx, t, uri)
	if err != nil {
		return flow{}, err
	}
	return s.hopFlow(all[0]), nil
}

// errNoAddress is returned if the name exists but has no usable address.
var errNowhere = errors.New("no usable address")

// resolveHops returns the destinations of a request in the order of use (RFC 3263 §4). Those that failed recently
// come last.
func (s *Server) locate(ctx context.Context, t Target, uri URI) ([]hop, error) {
	q, err := wanted(t, uri)
	if err != nil {
		return nil, err
	}
	all, err := s.places(ctx, q)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(h hop) bool { return h.kind == UDP && s.socketFor(h.addr.Addr()) == nil })
	if len(all) == 0 {
		return nil, fmt.Errorf("look up %s: %w", q.host, errNowhere)
	}
	all = all[:min(len(all), maxHops)]
	now := s.clock()
	slices.SortStableFunc(all, func(a, b hop) int {
		return cmp.Compare(side(s.dead.has(a.kind, a.addr, now)), side(s.dead.has(b.kind, b.addr, now)))
	})
	return all, nil
}

func side(b bool) int {
	if b {
		return 1
	}
	return 0
}

// resolveTarget is the target of a resolution. transport "" and port 0 are left open.
type goal struct {
	host string
	port int
	kind Transport
	sips bool
}

func wanted(t Target, uri URI) (goal, error) {
	g := goal{host: uri.Host, port: uri.Port, kind: t.Transport, sips: uri.Scheme == "sips"}
	if t.Host != "" {
		var ok bool
		if g.host, g.port, ok = splitHostPort(t.Host); !ok {
			return g, fmt.Errorf("malformed next hop %q", t.Host)
		}
	}
	if t.Host == "" && g.kind == "" {
		g.kind = uri.transport()
	}
	if g.sips && g.kind == "" {
		g.kind = TLS
	}
	if g.sips && !g.kind.secure() {
		return g, fmt.Errorf("%s requires TLS and may not be sent over %s", uri, g.kind)
	}
	if g.kind.web() {
		return g, fmt.Errorf("%s is reachable only over a WebSocket connection that it opened", uri)
	}
	return g, nil
}

// lookupHops follows the steps of RFC 3263 §4: literal address or port, NAPTR, SRV.
func (s *Server) places(ctx context.Context, g goal) ([]hop, error) {
	if a, err := netip.ParseAddr(g.host); err == nil {
		return []hop{g.at(a, g.port)}, nil
	}
	if g.port != 0 {
		return s.hosts(ctx, g, g.host, g.port)
	}
	names, err := s.services(ctx, g)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		g.kind = n.kind
		all, found, err := s.servers(ctx, g, n.name)
		if err != nil || found {
			return all, err
		}
	}
	if len(names) > 1 {
		g.kind = "" // no SRV record for any transport: leave it open
	}
	return s.hosts(ctx, g, g.host, 0)
}

// hopAt returns the destination of the target at an address.
func (g goal) at(a netip.Addr, port int) hop {
	if g.kind == "" {
		g.kind = UDP
	}
	if port == 0 {
		port = g.kind.port()
	}
	return hop{g.kind, netip.AddrPortFrom(a.Unmap(), uint16(port)), g.host}
}

// hostHops returns the destinations at one host.
func (s *Server) hosts(ctx context.Context, g goal, host string, port int) ([]hop, error) {
	addrs, err := s.names.addresses(ctx, host)
	if err == nil && len(addrs) == 0 {
		err = errNowhere
	}
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", host, err)
	}
	var all []hop
	for _, a := range addrs {
		all = append(all, g.at(a, port))
	}
	return all, nil
}

// srvName is the name of SRV records and their transport.
type service struct {
	kind Transport
	name string
}

// naptrTransports maps the usable NAPTR services (RFC 3263 §4.1).
var naptrKinds = map[string]Transport{"SIPS+D2T": TLS, "SIP+D2T": TCP, "SIP+D2U": UDP}

// srvPrefix is the prefix of a transport's SRV name (RFC 3263 §4.1).
var srvPrefix = map[Transport]string{TLS: "_sips._tcp.", TCP: "_sip._tcp.", UDP: "_sip._udp."}

// srvNames returns the SRV names to query: that of the given transport, that of the best NAPTR rule, or those of each
// transport in turn.
func (s *Server) services(ctx context.Context, g goal) ([]service, error) {
	if g.kind != "" {
		return []service{{g.kind, srvPrefix[g.kind] + g.host}}, nil
	}
	rules, err := s.names.naptr(ctx, g.host)
	if err != nil {
		return nil, err
	}
	for _, r := range rules {
		kind, ok := naptrKinds[strings.ToUpper(r.Service)]
		if ok && strings.EqualFold(r.Flags, "s") && r.Replacement != "" {
			return []service{{kind, strings.TrimSuffix(r.Replacement, ".")}}, nil
		}
	}
	return []service{{UDP, srvPrefix[UDP] + g.host}, {TCP, srvPrefix[TCP] + g.host}, {TLS, srvPrefix[TLS] + g.host}}, nil
}

// srvHops returns the destinations of an SRV name. found is false if it has no records.
func (s *Server) servers(ctx context.Context, g goal, name string) (all []hop, found bool, err error) {
	records, err := s.names.srv(ctx, name)
	if err != nil || len(records) == 0 {
		return nil, false, err
	}
	for _, r := range inTurn(slices.Clone(records)) {
		target := strings.TrimSuffix(r.Target, ".")
		if target == "" || r.Port == 0 {
			continue // RFC 2782: the service is not available here
		}
		some, hostErr := s.hosts(ctx, g, target, int(r.Port))
		if hostErr != nil {
			err = hostErr // another target may be usable
		}
		if all = append(all, some...); len(all) >= maxHops {
			break
		}
	}
	if len(all) > 0 {
		err = nil
	} else if err == nil {
		err = fmt.Errorf("look up %s: %w", name, errNowhere)
	}
	return all, true, err
}

// orderSRV orders servers by priority, and randomly by weight within one priority (RFC 2782).
func inTurn(all []SRV) []SRV {
	slices.SortStableFunc(all, func(a, b SRV) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(side(a.Weight > 0), side(b.Weight > 0)))
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
