package rest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestMetrics_KeyOrDirectPeer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key, remote, header, value string
		want                       bool
	}{
		{"", "127.0.0.1:1", "", "", true},
		{"", "[::1]:1", "", "", true},
		{"", "192.0.2.1:1", "", "", false},
		{"", "127.0.0.1:1", "X-Forwarded-For", "127.0.0.1", false},
		{"", "127.0.0.1:1", "X-Forwarded-Proto", "https", false},
		{"", "127.0.0.1:1", "Forwarded", "for=127.0.0.1", false},
		{"", "127.0.0.1:1", "Via", "1.1 proxy", false},
		{"", "127.0.0.1:1", "X-Real-IP", "", false},
		{"", "192.0.2.1:1", "Authorization", "Bearer ", false},
		{"s3cret", "127.0.0.1:1", "", "", false},
		{"s3cret", "127.0.0.1:1", "Authorization", "Bearer s3cre", false},
		{"s3cret", "127.0.0.1:1", "Authorization", "s3cret", false},
		{"s3cret", "127.0.0.1:1", "Authorization", "Bearer s3cret", true},
		{"s3cret", "192.0.2.1:1", "Authorization", "Bearer s3cret", true},
		{"s3cret", "192.0.2.1:1", "Authorization", "bearer s3cret", true}, // https://github.com/BerriAI/litellm/issues/34743
	} {
		s := &Server{cfg: Config{MetricsKey: c.key}}
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		if r.RemoteAddr = c.remote; c.header != "" {
			r.Header.Set(c.header, c.value)
		}
		if got := s.mayReadMetrics(r); got != c.want {
			t.Errorf("key %q, from %s with %s: %s: %t", c.key, c.remote, c.header, c.value, got)
		}
	}
}

// No page of the server has inline scripts or styles of its own.
func TestPages_NoInlineCode(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"page": page, "docs": docsPage} {
		for _, part := range []string{"<style", "<script>", "style=", "onclick", "onload"} {
			if strings.Contains(text, part) {
				t.Errorf("%s has %s", name, part)
			}
		}
	}
	s := &Server{cfg: Config{Secure: true}}
	h := http.Header{}
	s.setSecurityHeaders(h)
	if h.Get("Content-Security-Policy") == "" || h.Get("Strict-Transport-Security") == "" || h.Get("X-Frame-Options") != "DENY" {
		t.Errorf("headers %v", h)
	}
}
