package rest

import (
	"net/http/httptest"
	"net/netip"
	"testing"
)

func TestClientAddress_TrustedProxiesOnly(t *testing.T) {
	t.Parallel()
	s := &Server{cfg: Config{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}}
	for _, c := range []struct {
		remote    string
		forwarded []string
		want      string
	}{
		{"192.0.2.1:1", []string{"198.51.100.1"}, "192.0.2.1"},
		{"10.0.0.1:1", nil, "10.0.0.1"},
		{"10.0.0.1:1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"10.0.0.1:1", []string{"203.0.113.9, 198.51.100.1"}, "198.51.100.1"},
		{"10.0.0.1:1", []string{"203.0.113.9, 198.51.100.1, 10.0.0.2"}, "198.51.100.1"},
		{"10.0.0.1:1", []string{"203.0.113.9", "198.51.100.1"}, "198.51.100.1"},
		{"[fd00::1]:1", []string{"2001:db8::7"}, "2001:db8::7"},
		{"[::ffff:10.0.0.1]:1", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		{"10.0.0.1:1", []string{"nonsense"}, "10.0.0.1"},
		{"10.0.0.1:1", []string{"198.51.100.1, nonsense"}, "10.0.0.1"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.remote
		for _, f := range c.forwarded {
			r.Header.Add("X-Forwarded-For", f)
		}
		if got := s.clientAddress(r); got != netip.MustParseAddr(c.want) {
			t.Errorf("from %s with %q: %s, want %s", c.remote, c.forwarded, got, c.want)
		}
	}
}
