package auth_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"soniq/internal/identity/auth"
)

// Cursor registers an address of its own scheme beside https ones, and could not sign in (https://github.com/laravel/mcp/issues/173).
func TestRegisterClient_PrivateUseSchemes(t *testing.T) {
	eachDB(t, func(s *server) {
		all := []string{"cursor://anysphere.cursor-mcp/oauth/callback", "https://www.cursor.com/agents/mcp/oauth/callback",
			"http://localhost:8787/callback", "com.example.app:/oauth2redirect", "vscode://vendor.ext/done?x=1", "raycast://oauth", "x-app.1+2:///cb"}
		a := s.register(`{"client_name":"Cursor","redirect_uris":` + jsonList(t, all) + `}`)
		if a.Status != 201 {
			s.t.Fatalf("%d %s", a.Status, a.Text)
		}
		for _, to := range all {
			r := request("client_id", a.ClientID, "redirect_uri", to)
			got, _, err := s.oauth.ParseAuthorizationRequest(context.Background(), r)
			if err != nil || got.Redirect != to {
				s.t.Errorf("%s: %v", to, err)
				continue
			}
			private := !strings.HasPrefix(to, "http")
			if got.OnOwnMachine() != (private || strings.Contains(to, "localhost")) || got.Host() == "" {
				s.t.Errorf("%s: shown as %q, on the own machine: %t", to, got.Host(), got.OnOwnMachine())
			}
			if x := s.redeem(s.agree(r), "client_id", a.ClientID, "redirect_uri", to); x.Status != 200 {
				s.t.Errorf("%s: %s", to, x.Text)
			}
		}
		for _, other := range []string{"cursor://anysphere.cursor-mcp/oauth/callback/", "cursor://anysphere.cursor-mcp:1/oauth/callback",
			"cursor://other/oauth/callback", "Cursor://anysphere.cursor-mcp/oauth/callback", "com.example.app:/", "com.example.app:/oauth2redirect?a=b",
			"com.example.app://oauth2redirect", "raycast://OAuth", "vscode://vendor.ext/done"} {
			if _, to, err := s.oauth.ParseAuthorizationRequest(context.Background(),
				request("client_id", a.ClientID, "redirect_uri", other)); err == nil ||
				to != "" {
				s.t.Errorf("%s is taken for one of the client's", other)
			}
		}
		for _, foreign := range []string{"cursor://localhost/callback", "myapp://127.0.0.1:33418/callback", "myapp:/callback"} {
			if _, to, err := s.oauth.ParseAuthorizationRequest(context.Background(), request("redirect_uri", foreign)); err == nil ||
				to != "" {
				s.t.Errorf("the fixed client may be led to %s", foreign)
			}
		}
	})
}

// A refused address is named in the error.
func TestRegisterClient_RefusedAddressNamed(t *testing.T) {
	eachDB(t, func(s *server) {
		for _, bad := range []string{"javascript:alert(1)", "JavaScript://localhost/%0aalert(1)", "data:text/html,x", "file:///etc/passwd",
			"blob:https://a.example/1", "vbscript:x", "view-source:https://a.example", "about:blank", "intent://x/#Intent;end", "ftp://a.example/cb",
			"mailto:a@example.com", "tel:+442079460018", "ws://a.example/cb", "urn:ietf:wg:oauth:2.0:oob", "http://a.example/cb", "https:///cb",
			"https:a.example", "cursor://u:p@host/cb", "cursor://host/cb#x", "cursor:cb", "cursor:", "/cb", "cb", "", "ht tp://x/",
			"cursor://h/" + strings.Repeat("x", 2000)} {
			a := s.register(`{"redirect_uris":` + jsonList(t, []string{"https://a.example/cb", bad}) + `}`)
			var e struct {
				Description string `json:"error_description"`
			}
			if err := json.Unmarshal([]byte(a.Text), &e); err != nil {
				s.t.Fatal(err)
			}
			if a.Status != 400 || a.Error != "invalid_redirect_uri" || !strings.Contains(e.Description, bad[:min(len(bad), 150)]) {
				s.t.Errorf("%s: %d %s", bad, a.Status, a.Text)
			}
		}
	})
}

func jsonList(t *testing.T, all []string) string {
	t.Helper()
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The scheme of a credential has no case (https://github.com/BerriAI/litellm/issues/34743).
func TestIntrospect_SchemeWithoutCase(t *testing.T) {
	eachDB(t, func(s *server) {
		token := s.tokens().Access
		for _, scheme := range []string{"Bearer ", "bearer ", "BEARER  "} {
			if a := s.post("/auth/oauth/introspect", url.Values{"token": {token}}, "Authorization", scheme+token); a.Status != 200 || !a.Active {
				s.t.Errorf("%q: %d %s", scheme, a.Status, a.Text)
			}
		}
	})
}

// A client of MCP revision 2025-03-26 knows no metadata of resources. It looks at the root of the host, and tries the paths that the
// revision prescribes (https://github.com/modelcontextprotocol/php-sdk/issues/326).
func TestClientOfRevision20250326_GetsToken(t *testing.T) {
	eachDB(t, func(s *server) {
		var m struct {
			Authorize string `json:"authorization_endpoint"`
			Token     string `json:"token_endpoint"`
			Register  string `json:"registration_endpoint"`
		}
		if a := s.get("/.well-known/oauth-authorization-server"); a.Status != 200 || json.Unmarshal([]byte(a.Text), &m) != nil {
			s.t.Fatalf("%d %s", a.Status, a.Text)
		}
		if m.Authorize != issuer+"/oauth/authorize" || m.Token != issuer+"/oauth/token" || m.Register != issuer+"/oauth/register" {
			s.t.Errorf("%+v", m)
		}
		a := s.do(httptest.NewRequest("POST", base+"/register", strings.NewReader(`{"redirect_uris":["http://localhost:1/cb"]}`)))
		if a.Status != 201 {
			s.t.Fatalf("%d %s", a.Status, a.Text)
		}
		q := request("client_id", a.ClientID, "redirect_uri", "http://localhost:1/cb", "resource", "-")
		to := s.get("/authorize?" + q.Encode())
		if want := "/auth/oauth/authorize?" + q.Encode(); to.Status != 307 || to.Header.Get("Location") != want {
			s.t.Errorf("%d, led to %s, want %s", to.Status, to.Header.Get("Location"), want)
		}
		got := s.post("/token", url.Values{"grant_type": {"authorization_code"}, "code": {s.agree(q)}, "client_id": {a.ClientID},
			"redirect_uri": {"http://localhost:1/cb"}, "code_verifier": {verifier}})
		if got.Status != 200 || s.errorAt(got.Access, auth.MCP) != "" {
			s.t.Errorf("%d %s", got.Status, got.Text)
		}
	})
}

// Libraries for OpenID Connect ask for its scopes at every server, when they ask and when they refresh. They are not granted.
func TestScopes_OfOpenIDIgnored(t *testing.T) {
	eachDB(t, func(s *server) {
		for asked, want := range map[string]string{"openid profile email calls:read": "calls:read", "openid calls:read offline_access": "calls:read",
			"openid": "calls:read contacts:read memory:read", "address phone calls:write": "calls:write"} {
			a := s.tokens("scope", asked)
			if a.Status != 200 || a.Scope != want {
				s.t.Errorf("%s: %d %s", asked, a.Status, a.Text)
			}
			if b := s.refresh(a.Refresh, "scope", asked); b.Status != 200 || b.Scope != want {
				s.t.Errorf("refreshed with %s: %d %s", asked, b.Status, b.Text)
			}
		}
	})
}
