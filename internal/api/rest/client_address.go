package rest

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// clientAddress returns the address of the client: the peer of the connection or, behind trusted proxies, the last
// untrusted address in X-Forwarded-For. Addresses further left can be forged and are ignored.
func (s *Server) clientAddress(r *http.Request) netip.Addr {
	at, _ := netip.ParseAddrPort(r.RemoteAddr)
	from := at.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && s.isTrustedProxy(from); i-- {
		a, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			return from
		}
		from = a.Unmap()
	}
	return from
}

func (s *Server) isTrustedProxy(a netip.Addr) bool {
	return slices.ContainsFunc(s.cfg.Proxies, func(p netip.Prefix) bool { return p.Contains(a) })
}
