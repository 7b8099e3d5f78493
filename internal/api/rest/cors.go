package rest

import (
	"net/http"
	"slices"
	"strings"
)

// CORS (Fetch standard): access for pages of other origins. The page itself sends a bearer token, so browsers are not
// allowed to send cookies.

// Headers that pages may send, and headers of an answer that they may read.
const (
	requestHeaders = "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, On-Behalf-Of, Prefer, Range, " +
		"X-Request-Id, traceparent"
	exposedHeaders = "Accept-Ranges, Content-Disposition, Content-Range, Deprecation, ETag, Idempotency-Replayed, Link, Location, " +
		"RateLimit, RateLimit-Limit, RateLimit-Policy, RateLimit-Remaining, RateLimit-Reset, Retry-After, Sunset, WWW-Authenticate, " +
		"X-Request-Id"
	preflightAge = "600" // seconds
)

// cors sets the CORS headers. It answers OPTIONS itself and returns true then.
func (s *Server) cors(w http.ResponseWriter, r *http.Request) (answered bool) {
	origin := r.Header.Get("Origin")
	allowed := origin != "" && s.originAllowed(origin)
	if len(s.cfg.Origins) > 0 {
		w.Header().Add("Vary", "Origin")
	}
	if allowed {
		if slices.Contains(s.cfg.Origins, "*") {
			origin = "*"
		}
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Access-Control-Expose-Headers", exposedHeaders)
	}
	if r.Method != http.MethodOptions {
		return false
	}
	methods := s.methods(r)
	if len(methods) == 0 {
		return false
	}
	if allowed && r.Header.Get("Access-Control-Request-Method") != "" {
		w.Header().Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
		w.Header().Set("Access-Control-Allow-Headers", requestHeaders)
		w.Header().Set("Access-Control-Max-Age", preflightAge)
	}
	w.Header().Set("Allow", strings.Join(append(methods, http.MethodOptions), ", "))
	w.WriteHeader(http.StatusNoContent)
	return true
}

// originAllowed reports whether pages of an origin may use the API.
func (s *Server) originAllowed(origin string) bool {
	return slices.ContainsFunc(s.cfg.Origins,
		func(o string) bool { return o == "*" || strings.EqualFold(strings.TrimSuffix(o, "/"), origin) })
}
