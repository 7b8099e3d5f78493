package rest

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestProvision_PrivateTransport(t *testing.T) {
	t.Parallel()
	s := &Server{cfg: Config{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}
	for _, c := range []struct {
		from, proto, forwarded string
		secure, want           bool
	}{
		{"192.0.2.1:5", "", "", true, true},
		{"192.0.2.1:5", "", "", false, false},
		{"192.0.2.1:5", "https", "", false, false}, // the header of an untrusted client is ignored
		{"10.0.0.1:5", "https", "192.0.2.1", false, true},
		{"10.0.0.1:5", "http", "192.0.2.1", false, false},
		{"10.0.0.1:5", "", "", false, false},
		{"127.0.0.1:5", "", "", false, true},
		{"[::1]:5", "", "", false, true},
		{"127.0.0.1:5", "http", "", false, false}, // a proxy on this machine, for a remote client
		{"127.0.0.1:5", "", "192.0.2.1", false, false},
	} {
		r := httptest.NewRequest("GET", "/provision/secret/f.cfg", nil)
		r.RemoteAddr = c.from
		for name, value := range map[string]string{"X-Forwarded-Proto": c.proto, "X-Forwarded-For": c.forwarded} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		if c.secure {
			r.TLS = &tls.ConnectionState{}
		}
		if got := s.isPrivate(r); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
		if loggableTarget(r) != "GET /provision/…" {
			t.Errorf("noted as %s", loggableTarget(r))
		}
	}
}

// Secrets in paths and queries are not in logs.
func TestLoggableTarget_WithoutSecrets(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/provision/s3cret/x.cfg", "/invite/s3cret", "/account/welcome/s3cret", "/carriers/sms/s3cret", "/ws/sip?token=s3cret",
		"/v1/recordings/rec_1/audio?signature=s3cret", noticePrefix + "org/id/s3cret"} {
		if got := loggableTarget(httptest.NewRequest(http.MethodGet, path, nil)); strings.Contains(got, "s3cret") {
			t.Errorf("%s is logged as %s", path, got)
		}
	}
}
