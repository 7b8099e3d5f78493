package rest

import (
	"net/http"
	"net/netip"
	"strings"

	"soniq/internal/platform/op"
)

// provisionPrefix is the path prefix from which phones fetch their configuration. The next segment is a secret.
const provisionPrefix = "/provision/"

// secretPrefixes are the beginnings of paths that continue with a secret.
var secretPrefixes = []string{provisionPrefix, noticePrefix, "/invite/", "/account/welcome/", "/carriers/sms/"}

// loggableTarget returns the method and path of a request without secrets, for logs.
func loggableTarget(r *http.Request) string {
	for _, p := range secretPrefixes {
		if strings.HasPrefix(r.URL.Path, p) {
			return r.Method + " " + p + "…"
		}
	}
	return r.Method + " " + r.URL.Path
}

func (s *Server) provision(w http.ResponseWriter, r *http.Request) {
	s.cfg.Provision.Serve(w, r.WithContext(op.WithClientAddress(r.Context(), s.clientAddress(r))), s.isPrivate(r))
}

// isPrivate reports whether the answer cannot be read in transit: the request came over TLS, through a trusted proxy
// over TLS, or from this machine without a proxy.
func (s *Server) isPrivate(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	at, _ := netip.ParseAddrPort(r.RemoteAddr)
	from := at.Addr().Unmap()
	if proto := r.Header.Get("X-Forwarded-Proto"); proto != "" && s.isTrustedProxy(from) {
		return strings.EqualFold(proto, "https")
	}
	return from.IsLoopback() && r.Header.Get("X-Forwarded-Proto") == "" && r.Header.Get("X-Forwarded-For") == ""
}
