package auth_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/identity/auth"
	"soniq/internal/platform/egress"
)

func TestClientDocument_FetchedFromClientID(t *testing.T) {
	var reached atomic.Int32
	var site *httptest.Server
	site = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		id := site.URL + r.URL.Path
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/other.json":
			id = site.URL + "/good.json"
		case "/moved.json":
			http.Redirect(w, r, "/good.json", http.StatusFound)
			return
		case "/page.json":
			w.Header().Set("Content-Type", "text/html")
		case "/long.json":
			_, _ = fmt.Fprintf(w, `{"x":%q,`, strings.Repeat("x", 40<<10))
			return
		case "/secret.json":
			_, _ = fmt.Fprintf(w, `{"client_id":%q,"client_secret":"x","redirect_uris":["https://client.example/cb"]}`, id)
			return
		}
		_, _ = fmt.Fprintf(w, `{"client_id":%q,"client_name":"Described","redirect_uris":["https://client.example/cb"],"token_endpoint_auth_method":"none"}`, id)
	}))
	t.Cleanup(site.Close)
	authorities := x509.NewCertPool()
	authorities.AddCert(site.Certificate())
	limits := egress.Limits{Total: 10 * time.Second, Body: 32 << 10, TLS: &tls.Config{RootCAs: authorities}}
	within := egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}).Client(limits)
	outside := egress.New(nil).Client(limits)
	eachDB(t, func(s *server) {
		asks := func(id string) string {
			_, to, err := s.oauth.ParseAuthorizationRequest(context.Background(),
				request("client_id", id, "redirect_uri", "https://client.example/cb"))
			var r *auth.OAuthError
			if errors.As(err, &r) && to == "" {
				return r.Code
			}
			return fmt.Sprint(err)
		}
		c := s.config
		c.Fetch = outside
		s.oauth = auth.NewOAuth(s.Service, c)
		before := reached.Load()
		if got := asks(site.URL + "/good.json"); got != "invalid_client" || reached.Load() != before {
			s.t.Errorf("a private address: %s, %d connections", got, reached.Load()-before)
		}
		c.Fetch = within
		s.oauth = auth.NewOAuth(s.Service, c)
		for _, bad := range []string{"/other.json", "/moved.json", "/page.json", "/long.json", "/secret.json", "/", "", "/a/../good.json", "/good.json#x"} {
			if got := asks(site.URL + bad); got != "invalid_client" {
				s.t.Errorf("%s: %s", bad, got)
			}
		}
		if got := asks(strings.Replace(site.URL, "https", "http", 1) + "/good.json"); got != "invalid_client" {
			s.t.Errorf("http: %s", got)
		}
		if got := asks(site.URL + "/good.json"); got != "<nil>" {
			s.t.Fatal(got)
		}
		before = reached.Load()
		if asks(site.URL + "/good.json"); reached.Load() != before {
			s.t.Error("the description is read again within five minutes")
		}
		if _, _, err := s.oauth.ParseAuthorizationRequest(context.Background(), request("client_id", site.URL+"/good.json", "redirect_uri", "https://client.example/cb", "scope", "partners:read")); err == nil {
			s.t.Error("partner scopes are given to a described client")
		}
		for range 40 {
			asks(site.URL + "/other.json")
		}
		if asks(site.URL + "/new.json"); reached.Load() > before+40 {
			s.t.Errorf("%d descriptions were read within a minute", reached.Load()-before)
		}
	})
}
