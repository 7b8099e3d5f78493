package transport

import (
	"net"
	"net/netip"
	"slices"
)

// Whether an address is one of this server.

// IsOurs reports whether an address is public or listening here; port 0 stands for any port.
func (s *Layer) IsOurs(a netip.Addr, port int) bool {
	a = a.Unmap()
	if slices.Contains(s.advertised.public[:], a) {
		return true
	}
	at := func(p netip.AddrPort) bool {
		if port != 0 && port != int(p.Port()) {
			return false
		}
		return p.Addr() == a || p.Addr().IsUnspecified() && canReach(p.Addr(), a) && onThisMachine(a)
	}
	return slices.ContainsFunc(s.advertised.plainAddrs, at) || slices.ContainsFunc(s.advertised.tlsAddrs, at)
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
