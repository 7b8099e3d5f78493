package egress_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/platform/egress"
)

// hostile are addresses that are not public in various notations.
var hostile = []string{
	"https://127.0.0.1/", "https://127.1/", "https://2130706433/", "https://0x7f.1/", "https://0177.0.0.1/",
	"https://0.0.0.0/", "https://[::]/", "https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://[::ffff:a9fe:a9fe]/",
	"https://10.1.2.3/", "https://172.31.255.255/", "https://192.168.1.1/", "https://100.64.0.1/", "https://100.100.100.200/",
	"https://169.254.169.254/latest/meta-data/", "https://[fd00:ec2::254]/", "https://[fe80::1]/", "https://[fe80::1%25eth0]/",
	"https://[64:ff9b::a9fe:a9fe]/", "https://[64:ff9b:1::7f00:1]/", "https://[2002:7f00:1::1]/", "https://[2001:db8::1]/",
	"https://[2001::1]/", "https://192.0.2.1/", "https://198.18.0.1/", "https://198.51.100.1/", "https://203.0.113.7/",
	"https://224.0.0.1/", "https://255.255.255.255/", "https://240.0.0.1/", "https://192.88.99.1/", "https://[ff02::1]/",
	"https://localhost/", "https://LOCALHOST./", "https://x.localhost/", "https://[fec0::1]/", "https://[::127.0.0.1]/",
}

func TestCheck_RefusesHostileAddresses(t *testing.T) {
	t.Parallel()
	g := egress.New(nil)
	for _, u := range hostile {
		if err := g.Check(u); err == nil {
			t.Errorf("Check(%s) accepts it", u)
		}
	}
}

func TestClient_RefusesHostileAddresses(t *testing.T) {
	t.Parallel()
	client := egress.New(nil).Client(egress.Limits{Connect: time.Second, Total: 2 * time.Second})
	for _, u := range hostile {
		response, err := client.Get(u)
		if err == nil {
			response.Body.Close()
			t.Errorf("GET %s was answered %d", u, response.StatusCode)
		}
	}
}

func TestCheck_AcceptsPublicAddresses(t *testing.T) {
	t.Parallel()
	g := egress.New(nil)
	for _, u := range []string{"https://example.com/hooks?a=b", "https://8.8.8.8/", "https://[2606:4700::1111]:8443/x",
		"https://1.example.com/", "https://bücher.example/"} {
		if err := g.Check(u); err != nil {
			t.Errorf("Check(%s) = %v", u, err)
		}
	}
}

func TestCheck_ErrorsNameRemedy(t *testing.T) {
	t.Parallel()
	for u, want := range map[string]string{
		"ftp://example.com/":                     "https://",
		"example.com":                            "https://",
		"https:///path":                          "no host",
		"https://u:p@example.com/":               "password",
		"https://example.com/#x":                 "fragment",
		"https://example.com:99999/":             "port",
		"http://example.com/":                    "--allow-targets",
		"https://10.0.0.1/":                      "--allow-targets 10.0.0.1",
		"http://8.8.8.8/":                        "--allow-targets 8.8.8.8",
		"https://x/" + strings.Repeat("a", 3000): "2048",
	} {
		if err := egress.New(nil).Check(u); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check(%.60s) = %v, want it to mention %q", u, err, want)
		}
	}
}

func server(t *testing.T, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") }

func TestGuard_AllowListPermitsHTTP(t *testing.T) {
	t.Parallel()
	s := server(t, ok)
	open := egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	if err := open.Check(s.URL); err != nil {
		t.Fatal(err)
	}
	response, err := open.Client(egress.Limits{}).Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	other := egress.New([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	if err := other.Check(s.URL); !errors.Is(err, egress.ErrBlocked) {
		t.Errorf("Check with another network allowed = %v, want ErrBlocked", err)
	}
}

func TestClient_NoRedirects(t *testing.T) {
	t.Parallel()
	inside := false
	s := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/inside" {
			inside = true
		}
		http.Redirect(w, r, "/inside", http.StatusFound)
	})
	response, err := loopback().Client(egress.Limits{}).Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusFound || inside {
		t.Errorf("status %d, followed %v; want 302, not followed", response.StatusCode, inside)
	}
}

func loopback() *egress.Guard {
	return egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")})
}

func TestClient_IgnoresProxy(t *testing.T) {
	var proxied atomic.Bool
	proxy := server(t, func(http.ResponseWriter, *http.Request) { proxied.Store(true) })
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("HTTPS_PROXY", proxy.URL)
	guard := egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("192.0.2.0/24")})
	// This address is reserved for documentation (RFC 5737). A request to this machine would not use a proxy in any case.
	response, err := guard.Client(egress.Limits{Connect: time.Second}).Get("http://192.0.2.1/")
	if err == nil {
		response.Body.Close()
	}
	if proxied.Load() {
		t.Error("the request went to the proxy")
	}
}

func TestClient_BodyLimit(t *testing.T) {
	t.Parallel()
	s := server(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 1001)) })
	for limit, want := range map[int64]error{1000: egress.ErrTooLarge, 1001: nil, 2000: nil} {
		response, err := loopback().Client(egress.Limits{Body: limit}).Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(response.Body)
		response.Body.Close()
		if !errors.Is(err, want) || int64(len(b)) > limit {
			t.Errorf("limit %d: read %d, %v; want %v", limit, len(b), err, want)
		}
	}
}

func TestClient_Timeout(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := server(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	_, err := loopback().Client(egress.Limits{Total: 50 * time.Millisecond}).Get(s.URL)
	var n net.Error
	if !errors.As(err, &n) || !n.Timeout() {
		t.Errorf("err = %v, want a timeout", err)
	}
}

func TestResolve_Loopback(t *testing.T) {
	t.Parallel()
	if err := egress.New(nil).Resolve(context.Background(), "localhost"); err == nil {
		t.Error("localhost resolves to something public")
	}
	if err := loopback().Resolve(context.Background(), "localhost"); err != nil {
		t.Errorf("localhost, allowed: %v", err)
	}
}

// A guard that is held judges addresses as before, and opens no connection.
func TestNewHeld_OpensNothing(t *testing.T) {
	t.Parallel()
	reached := false
	s := server(t, func(http.ResponseWriter, *http.Request) { reached = true })
	reason := errors.New("a restored copy")
	g := egress.NewHeld([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, reason)
	if err := g.Check(s.URL); err != nil {
		t.Errorf("Check: %v", err)
	}
	if _, err := g.Client(egress.Limits{}).Get(s.URL); !errors.Is(err, reason) {
		t.Errorf("GET: %v", err)
	}
	if _, _, err := g.Dial(t.Context(), s.Listener.Addr().String()); !errors.Is(err, reason) {
		t.Errorf("Dial: %v", err)
	}
	if reached {
		t.Error("a request went out")
	}
}
