package sip

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// resolve finds the address of a next hop: a literal, the first SRV target, or
// the first address of the name (RFC 3263 without failover).
func (s *Server) resolve(ctx context.Context, t Target, uri URI) (flow, error) {
	host, port := uri.Host, uri.Port
	if t.Host != "" {
		var ok bool
		if host, port, ok = splitHostPort(t.Host); !ok {
			return flow{}, fmt.Errorf("malformed next hop %q", t.Host)
		}
	}
	if t.Host == "" && t.Transport == "" {
		t.Transport = uri.transport()
	}
	if uri.Scheme == "sips" && t.Transport != TLS {
		return flow{}, fmt.Errorf("%s may not be sent over %s", uri, t.Transport)
	}
	name := host
	addr, err := netip.ParseAddr(host)
	if err != nil {
		if host, port, addr, err = lookup(ctx, host, port, t.Transport); err != nil {
			return flow{}, err
		}
	}
	if port == 0 {
		port = t.Transport.port()
	}
	return s.to(t.Transport, netip.AddrPortFrom(addr.Unmap(), uint16(port)), name), nil
}

func lookup(ctx context.Context, host string, port int, t Transport) (string, int, netip.Addr, error) {
	if t == "" {
		t = UDP
	}
	if port == 0 { // RFC 3263 §4.2
		if _, srv, err := net.DefaultResolver.LookupSRV(ctx, "sip", string(t), host); err == nil && len(srv) > 0 {
			host, port = srv[0].Target, int(srv[0].Port)
		}
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(addrs) == 0 {
		return host, port, netip.Addr{}, fmt.Errorf("look up %s: %w", host, err)
	}
	return host, port, addrs[0], nil
}
