package sip

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Whether a URI names a user at this server.

// IsLocalURI reports whether a SIP URI names a user at this server: its host is the realm, one of Config.Names, a
// public address, or a listening address with the same port, if the URI has one.
func (s *Server) IsLocalURI(u URI) bool {
	host := strings.TrimSuffix(u.Host, ".")
	if host == "" || !u.isSIP() {
		return false
	}
	same := func(name string) bool { return strings.EqualFold(host, name) }
	if same(s.config.Realm) || slices.ContainsFunc(s.config.Names, same) {
		return true
	}
	a, err := netip.ParseAddr(host)
	if same("localhost") {
		a, err = netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	if err != nil {
		return false
	}
	a = a.Unmap()
	if slices.Contains(s.advertisedAddrs.public[:], a) {
		return true
	}
	at := func(p netip.AddrPort) bool {
		return (u.Port == 0 || u.Port == int(p.Port())) && (p.Addr() == a || p.Addr().IsUnspecified() && canReach(p.Addr(), a) && onThisMachine(a))
	}
	return slices.ContainsFunc(s.advertisedAddrs.plainAddrs, at) || slices.ContainsFunc(s.advertisedAddrs.tlsAddrs, at)
}

// onThisMachine reports whether an address is one of this machine's interfaces.
func onThisMachine(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	addrs, _ := net.InterfaceAddrs()
	return slices.ContainsFunc(addrs, func(x net.Addr) bool {
		p, err := netip.ParsePrefix(x.String())
		return err == nil && p.Addr().Unmap() == a
	})
}
