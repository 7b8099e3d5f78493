package rest

import (
	"net/http"
	"slices"
	"strings"
)

// This file lets pages of other origins use the API (the CORS protocol of the Fetch standard). Credentials are bearer tokens that
// the page itself sends, so browsers are never told to send cookies.

// What pages may send, and what they may read of an answer beside its body.
const (
	askedHeaders = "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, On-Behalf-Of, Prefer, Range, " +
		"X-Request-Id, traceparent"
	shownHeaders = "Accept-Ranges, Content-Disposition, Content-Range, Deprecation, ETag, Idempotency-Replayed, Link, Location, " +
		"RateLimit, RateLimit-Limit, RateLimit-Policy, RateLimit-Remaining, RateLimit-Reset, Retry-After, Sunset, WWW-Authenticate, " +
		"X-Request-Id"
	preflightAge = "600" // seconds
)

// cors tells a browser whether the page that asks may read the answer. It answers OPTIONS, and then returns true.
func (s *Server) cors(w http.ResponseWriter, r *http.Request) (answered bool) {
	origin := r.Header.Get("Origin")
	allowed := origin != "" && s.origin(origin)
	if len(s.Origins) > 0 {
		w.Header().Add("Vary", "Origin")
	}
	if allowed {
		if slices.Contains(s.Origins, "*") {
			origin = "*"
		}
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Access-Control-Expose-Headers", shownHeaders)
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
		w.Header().Set("Access-Control-Allow-Headers", askedHeaders)
		w.Header().Set("Access-Control-Max-Age", preflightAge)
	}
	w.Header().Set("Allow", strings.Join(append(methods, http.MethodOptions), ", "))
	w.WriteHeader(http.StatusNoContent)
	return true
}

// origin reports whether pages of an origin may use the API.
func (s *Server) origin(origin string) bool {
	return slices.ContainsFunc(s.Origins, func(o string) bool { return o == "*" || strings.EqualFold(strings.TrimSuffix(o, "/"), origin) })
}
