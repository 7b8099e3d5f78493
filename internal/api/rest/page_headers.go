package rest

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/netip"
	"strings"

	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
)

// Content security policies (CSP Level 3). No page has inline scripts.
const (
	// answerPolicy is for all answers that set no policy of their own. A browser that opens them runs nothing and loads nothing else.
	answerPolicy = "default-src 'none'; img-src 'self'; media-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	// pagePolicy is for the home page and the pages of errors.
	pagePolicy = "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	// docsPolicy is for the API reference. Its viewer makes styles at run time, and sends requests to this server only.
	docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; " +
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

// setSecurityHeaders sets the headers that protect browsers. Pages replace the policy by their own.
func (s *Server) setSecurityHeaders(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", answerPolicy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	if s.cfg.Secure {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// writePage starts an HTML page with a policy.
func writePage(w http.ResponseWriter, policy string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", policy)
}

// stylesheet serves the styles of a page.
func stylesheet(name string) http.HandlerFunc {
	text, err := docsFiles.ReadFile(name)
	if err != nil {
		panic(err) // embedded from the tree
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		w.Header().Set("Cache-Control", "public, max-age=3600")
		_, _ = w.Write(text)
	}
}

// mayReadMetrics reports whether a request may read the metrics. With a key, every request needs it. Without a key, the request must come
// from this machine itself: a proxy on this machine forwards requests of others.
func (s *Server) mayReadMetrics(r *http.Request) bool {
	if s.cfg.MetricsKey == "" {
		source, _ := netip.ParseAddrPort(r.RemoteAddr)
		return source.Addr().Unmap().IsLoopback() && !isForwarded(r.Header)
	}
	token, ok := access.Bearer(r)
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.cfg.MetricsKey))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1 && ok
}

// forwardingHeaders are the headers that proxies add, beside all that begin with X-Forwarded.
var forwardingHeaders = []string{"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "Client-Ip", "True-Client-Ip",
	"Cf-Connecting-Ip", "Cf-Ray", "Fastly-Client-Ip", "X-Original-Forwarded-For", "X-Original-Host", "X-Envoy-External-Address"}

// isForwarded reports whether a proxy forwarded the request.
func isForwarded(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, "X-Forwarded") {
			return true
		}
	}
	for _, name := range forwardingHeaders {
		if _, ok := h[name]; ok {
			return true
		}
	}
	return false
}

// metrics serves the metrics.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	if !s.mayReadMetrics(r) {
		op.Write(w, r, op.Fail("unauthenticated", "metrics need the token of --metrics-key as a bearer token; without that setting they are "+
			"only for requests from this machine that no proxy forwarded"))
		return
	}
	s.cfg.Metrics.ServeHTTP(w, r)
}
