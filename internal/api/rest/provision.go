package rest

import (
	"net/http"
	"net/netip"
	"strings"

	"soniq/internal/platform/op"
)

// provisionFolder is below which phones fetch their configuration. The next segment is a secret.
const provisionFolder = "/provision/"

// target is the address of a request as it may be written down.
func target(r *http.Request) string {
	if strings.HasPrefix(r.URL.Path, provisionFolder) {
		return r.Method + " " + provisionFolder + "…"
	}
	if strings.HasPrefix(r.URL.Path, noticeFolder) {
		return r.Method + " " + noticeFolder + "…"
	}
	return r.Method + " " + r.URL.Path
}

func (s *Server) provision(w http.ResponseWriter, r *http.Request) {
	s.Provision(w, r.WithContext(op.WithClientAddress(r.Context(), s.source(r))), s.private(r))
}

// private reports whether nobody on the way can read the answer: it goes by TLS, to a trusted proxy that was asked by TLS, or
// stays on this machine.
func (s *Server) private(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	at, _ := netip.ParseAddrPort(r.RemoteAddr)
	from := at.Addr().Unmap()
	if proto := r.Header.Get("X-Forwarded-Proto"); proto != "" && s.trusts(from) {
		return strings.EqualFold(proto, "https")
	}
	return from.IsLoopback() && r.Header.Get("X-Forwarded-Proto") == "" && r.Header.Get("X-Forwarded-For") == ""
}
