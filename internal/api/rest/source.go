package rest

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// source is who asks: the other end of the connection or, behind proxies that the operator trusts, who the first of them names.
// What stands further left in X-Forwarded-For may be made up, and is not looked at.
func (s *Server) source(r *http.Request) netip.Addr {
	at, _ := netip.ParseAddrPort(r.RemoteAddr)
	from := at.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && s.trusts(from); i-- {
		a, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			return from
		}
		from = a.Unmap()
	}
	return from
}

func (s *Server) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(s.Proxies, func(p netip.Prefix) bool { return p.Contains(a) })
}
