package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/identity/auth"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

const (
	base     = "https://voice.example.com"
	issuer   = base + "/auth"
	verifier = "a-verifier-of-more-than-forty-three-characters-0"
	callback = "http://127.0.0.1:33418/callback"
)

func TestToken_ScopesOfConsent(t *testing.T) {
	eachDB(t, func(s *server) {
		a := s.redeem(s.agree(request(), access.CallsRead, access.ContactsRead)) // the user did not tick calls:write
		if a.Status != 200 || a.Scope != "calls:read contacts:read" || !strings.HasPrefix(a.Access, "soniq_at_") || !strings.HasPrefix(a.Refresh, "soniq_rt_") {
			s.t.Fatalf("%d %s", a.Status, a.Text)
		}
		p, err := s.VerifyFor(context.Background(), a.Access, auth.MCP, access.Live, here)
		if err != nil || p.UserID != s.person.UserID || p.OrgID != s.org.ID || p.Kind != access.OAuthToken ||
			p.KeyName != "soniq-assistant" ||
			fmt.Sprint(p.Scopes) != "[calls:read contacts:read]" || p.Limits.ReadsPerMinute == 0 {
			s.t.Errorf("principal %+v, %v", p, err)
		}
		if err := s.Revalidate(context.Background(), p); err != nil {
			s.t.Error(err)
		}
		if code := s.errorAt(a.Access, auth.REST); code != "unauthenticated" {
			s.t.Errorf("a token for the tools at the API: %q", code)
		}
		b := s.tokens("resource", base+"/api/v1")
		if s.errorAt(b.Access, auth.MCP) != "unauthenticated" || s.errorAt(b.Access, auth.REST) != "" {
			s.t.Error("a token for the API is not for the API alone")
		}
		if _, err := s.Verify(context.Background(), b.Access, access.Sandbox, here); err == nil {
			s.t.Error("a person's token works in the sandbox")
		}
		if s.errorAt(a.Refresh, auth.MCP) != "unauthenticated" {
			s.t.Error("a refresh token opens something")
		}
	})
}

func TestAuthorize_InvalidRequestsRefused(t *testing.T) {
	eachDB(t, func(s *server) {
		mine := s.register(`{"client_name":"Mine","redirect_uris":["https://mine.example/cb","http://localhost/cb"]}`).ClientID
		for _, c := range []struct {
			code, changes string
			led           bool
		}{
			{"invalid_request", "code_challenge -", true}, {"invalid_request", "code_challenge_method plain", true},
			{"invalid_request", "code_challenge_method -", true}, {"invalid_request", "code_challenge short", true},
			{"invalid_target", "resource https://other.example/mcp", true}, {"invalid_target", "resource " + base + "/account", true},
			{"unsupported_response_type", "response_type token", true}, {"unsupported_response_type", "response_type -", true},
			{"invalid_scope", "scope calls:everything", true}, {"invalid_request", "response_mode fragment", true}, {"consent_required", "prompt none", true},
			{"invalid_scope", "client_id " + mine + " redirect_uri https://mine.example/cb scope partners:read", true},
			{"invalid_client", "client_id nobody", false}, {"invalid_client", "client_id -", false},
			{"invalid_request", "redirect_uri https://evil.example/callback", false}, {"invalid_request", "redirect_uri http://127.0.0.1:1/evil", false},
			{"invalid_request", "redirect_uri http://evil.example/callback", false}, {"invalid_request", "redirect_uri -", false},
			{"invalid_request", "redirect_uri javascript://127.0.0.1/callback", false}, {"invalid_request", "redirect_uri http://127.0.0.1.evil.example/callback", false},
			{"invalid_request", "client_id " + mine + " redirect_uri https://mine.example/cb/more", false},
			{"invalid_request", "client_id " + mine + " redirect_uri https://mine.example/cb?x=1", false},
			{"invalid_request", "client_id " + mine + " redirect_uri http://localhost:99/other", false},
		} {
			_, to, err := s.oauth.ParseAuthorizationRequest(context.Background(), request(strings.Fields(c.changes)...))
			var r *auth.OAuthError
			if !errors.As(err, &r) || r.Code != c.code || c.led != (to != "") {
				s.t.Errorf("%s: %v, led to %q, want %s", c.changes, err, to, c.code)
			}
			u, _ := url.Parse(to)
			if q := u.Query(); to != "" && (q.Get("error") != c.code || q.Get("iss") != issuer || q.Get("state") != "xyz") {
				s.t.Errorf("%s: led to %s", c.changes, to)
			}
		}
		for _, good := range []string{"redirect_uri http://localhost:5/callback", "redirect_uri http://[::1]:7/oauth/callback", "redirect_uri https://assistant.example.com/back",
			"client_id " + mine + " redirect_uri http://localhost:4711/cb", "scope offline_access", "resource -", "scope partners:read"} {
			if _, _, err := s.oauth.ParseAuthorizationRequest(context.Background(), request(strings.Fields(good)...)); err != nil {
				s.t.Errorf("%s: %v", good, err)
			}
		}
		part := request(strings.Fields("client_id " + mine + " redirect_uri https://mine.example/cb")...)
		part.Set("scope", "partners:read calls:read partners:write") // as a client that requests all scopes
		if a, _, err := s.oauth.ParseAuthorizationRequest(context.Background(), part); err != nil ||
			!slices.Equal(a.Scopes, []access.Scope{access.CallsRead}) {
			s.t.Errorf("all that there is: %v, %v", a.Scopes, err)
		}
		q := request("state", "-")
		q.Add("redirect_uri", callback)
		if _, to, err := s.oauth.ParseAuthorizationRequest(context.Background(), q); err == nil || to != "" {
			s.t.Error("two redirect addresses are taken")
		}
	})
}

func TestToken_InvalidExchangesRefused(t *testing.T) {
	eachDB(t, func(s *server) {
		for _, c := range [][]string{
			{"invalid_grant", "code_verifier", "another-verifier-of-more-than-forty-three-characters"}, {"invalid_grant", "code_verifier", "-"},
			{"invalid_grant", "client_id", "client_other"}, {"invalid_client", "client_id", "-"}, {"invalid_target", "resource", base + "/api/v1"},
			{"invalid_target", "resource", "https://other.example/"}, {"invalid_grant", "redirect_uri", callback + "x"},
			{"unsupported_grant_type", "grant_type", "password"}, {"unsupported_grant_type", "grant_type", "client_credentials"}, {"invalid_request", "grant_type", "-"},
			{"invalid_grant", "code", "soniq_ac_nonsense"},
		} {
			s.wantError(s.redeem(s.agree(request()), c[1:]...), c[0], strings.Join(c[1:], " "))
		}
		if a := s.redeem(s.agree(request()), "redirect_uri", "-", "resource", "-"); a.Status != 200 {
			s.t.Errorf("without redirect_uri: %s", a.Text)
		}
		code := s.agree(request())
		s.now = s.now.Add(time.Minute)
		s.wantError(s.redeem(code), "invalid_grant", "a code of a minute ago")
		twice := url.Values{"grant_type": {"authorization_code", "refresh_token"}, "client_id": {"soniq-assistant"}}
		s.wantError(s.post("/auth/oauth/token", twice), "invalid_request", "a parameter twice")
		s.wantError(s.post("/auth/oauth/token", url.Values{}, "Content-Type", "application/json"), "invalid_request", "JSON")
	})
}

func TestCode_ReplayRevokesGrant(t *testing.T) {
	eachDB(t, func(s *server) {
		code := s.agree(request())
		a := s.redeem(code)
		s.wantError(s.redeem(code), "invalid_grant", "the second time")
		if s.errorAt(a.Access, auth.MCP) != "unauthenticated" {
			s.t.Error("the token of a replayed code is good")
		}
		s.wantError(s.refresh(a.Refresh), "invalid_grant", "the refresh token of a replayed code")
		code = s.agree(request())
		var all sync.WaitGroup
		good := make(chan reply, 20)
		for range 20 {
			all.Go(func() {
				if a := s.redeem(code); a.Status == 200 {
					good <- a
				}
			})
		}
		all.Wait()
		if len(good) != 1 {
			s.t.Errorf("%d of 20 requests got tokens for one code", len(good))
		}
	})
}

func TestRefresh_RotatesTokens(t *testing.T) {
	eachDB(t, func(s *server) {
		a := s.tokens()
		b := s.refresh(a.Refresh, "scope", "calls:read")
		if b.Status != 200 || b.Scope != "calls:read" || b.Refresh == a.Refresh || s.errorAt(b.Access, auth.MCP) != "" {
			s.t.Fatalf("%d %s", b.Status, b.Text)
		}
		s.wantError(s.refresh(b.Refresh, "scope", "calls:read users:admin"), "invalid_scope", "more scopes")
		s.wantError(s.refresh(b.Refresh, "resource", base), "invalid_target", "another resource")
		s.wantError(s.refresh(b.Refresh, "client_id", "client_x"), "invalid_grant", "another client")
		c := s.refresh(b.Refresh)
		if c.Status != 200 || c.Scope != "calls:read calls:write contacts:read" {
			s.t.Fatalf("what was granted is not whole again: %s", c.Text)
		}
		s.wantError(s.refresh(a.Refresh), "invalid_grant", "a spent token")
		s.wantError(s.refresh(c.Refresh), "invalid_grant", "its family")
		if s.errorAt(c.Access, auth.MCP) != "unauthenticated" {
			s.t.Error("the family's access token is good")
		}
		d := s.tokens()
		s.now = s.now.Add(59 * 24 * time.Hour)
		if d = s.refresh(d.Refresh); d.Status != 200 {
			s.t.Fatal("a refresh token of 59 days is refused")
		}
		s.now = s.now.Add(time.Hour)
		if s.errorAt(d.Access, auth.MCP) != "token_expired" {
			s.t.Error("an access token of an hour is good")
		}
		s.now = s.now.Add(60 * 24 * time.Hour)
		s.wantError(s.refresh(d.Refresh), "invalid_grant", "60 days unused")
	})
}

func TestRefresh_ReuseWindow(t *testing.T) {
	eachDB(t, func(s *server) {
		a := s.tokens()
		if s.refresh(a.Refresh).Status != 200 {
			s.t.Fatal("not refreshed")
		}
		b := s.refresh(a.Refresh) // the response was lost
		if b.Status != 200 {
			s.t.Fatalf("%s", b.Text)
		}
		if b = s.refresh(b.Refresh); b.Status != 200 {
			s.t.Fatalf("%s", b.Text)
		}
		s.wantError(s.refresh(a.Refresh), "invalid_grant", "once too often")
		s.wantError(s.refresh(b.Refresh), "invalid_grant", "its family")
		c := s.tokens()
		s.refresh(c.Refresh)
		s.now = s.now.Add(31 * time.Second)
		s.wantError(s.refresh(c.Refresh), "invalid_grant", "too late")
	}, func(c *auth.OAuthConfig) { c.ReuseWindow = 30 * time.Second })
}

func TestRevokeEndpoint_EndsTokens(t *testing.T) {
	eachDB(t, func(s *server) {
		a, b := s.tokens(), s.tokens()
		if r := s.post("/auth/oauth/revoke", url.Values{"token": {a.Access}, "client_id": {"soniq-assistant"}}); r.Status != 200 {
			s.t.Fatalf("%d %s", r.Status, r.Text)
		}
		if s.errorAt(a.Access, auth.MCP) != "unauthenticated" || s.refresh(a.Refresh).Status != 200 {
			s.t.Error("revoking an access token ends more, or less, than it")
		}
		s.wantError(s.post("/auth/oauth/revoke", url.Values{"token": {b.Refresh}, "client_id": {"client_x"}}), "invalid_grant", "another client")
		s.post("/auth/oauth/revoke", url.Values{"token": {b.Refresh}})
		if s.errorAt(b.Access, auth.MCP) != "unauthenticated" {
			s.t.Error("revoking a refresh token leaves its access token")
		}
		s.wantError(s.refresh(b.Refresh), "invalid_grant", "a revoked refresh token")
		if r := s.post("/auth/oauth/revoke", url.Values{"token": {"nonsense"}}); r.Status != 200 {
			s.t.Error("an unknown token cannot be revoked")
		}
		c := s.tokens()
		if err := s.db.TxContext(context.Background(), func(ctx context.Context, tx db.Querier) error {
			return s.RemoveUser(ctx, tx, s.org.ID, s.person.UserID)
		}); err != nil {
			s.t.Fatal(err)
		}
		if s.errorAt(c.Access, auth.MCP) != "unauthenticated" {
			s.t.Error("the token of who was removed is good")
		}
	})
}

func TestAccessToken_AtMostScopesOfUser(t *testing.T) {
	eachDB(t, func(s *server) {
		s.person = s.addUser("bob@example.com", "viewer")
		a := s.redeem(s.agree(request("scope", "calls:read calls:write users:admin")))
		if a.Scope != "calls:read" {
			s.t.Errorf("a viewer gave away %q", a.Scope)
		}
		s.person.Role = "admin" // the page assumed admin; the database has viewer
		b := s.redeem(s.agree(request("scope", "calls:read users:admin")))
		if p, err := s.VerifyFor(context.Background(), b.Access, auth.MCP, access.Live, here); err != nil ||
			fmt.Sprint(p.Scopes) != "[calls:read]" {
			s.t.Errorf("after the role changed: %v, %v", p.Scopes, err)
		}
	})
}

func TestStepUp_RefreshRefusedAfterMissingScope(t *testing.T) {
	eachDB(t, func(s *server) {
		a := s.tokens()
		p, err := s.VerifyFor(context.Background(), a.Access, auth.MCP, access.Live, here)
		if err != nil {
			s.t.Fatal(err)
		}
		if err := s.StepUp(context.Background(), p); err != nil {
			s.t.Fatal(err)
		}
		s.wantError(s.refresh(a.Refresh), "invalid_grant", "a refresh right after the refusal")
		s.now = s.now.Add(11 * time.Second)
		if s.refresh(a.Refresh).Status != 200 {
			s.t.Error("the token was spent")
		}
		want := `Bearer error="insufficient_scope", scope="calls:read calls:write users:admin", resource_metadata="` + base + `/.well-known/oauth-protected-resource/mcp/sse"`
		if got := s.oauth.ScopeChallenge("/mcp/sse", []access.Scope{access.CallsRead, access.CallsWrite},
			[]access.Scope{access.UsersAdmin}); got != want {
			s.t.Errorf("challenge %s", got)
		}
	})
}

func (s *server) register(body string) reply {
	return s.do(httptest.NewRequest("POST", base+"/auth/oauth/register", strings.NewReader(body)))
}

func TestRegisterClient(t *testing.T) {
	eachDB(t, func(s *server) {
		a := s.register(`{"client_name":"My\u202e  assistant\n","redirect_uris":["https://a.example/cb"],"token_endpoint_auth_method":"client_secret_basic","unknown":1}`)
		if a.Status != 201 || a.ClientID == "" || !strings.Contains(a.Text, `"client_name":"My assistant"`) || !strings.Contains(a.Text, `"token_endpoint_auth_method":"none"`) {
			s.t.Fatalf("%d %s", a.Status, a.Text)
		}
		if got := s.redeem(s.agree(request("client_id", a.ClientID, "redirect_uri", "https://a.example/cb")), "client_id", a.ClientID, "redirect_uri", "https://a.example/cb"); got.Status != 200 {
			s.t.Errorf("%s", got.Text)
		}
		for _, bad := range []string{`{"redirect_uris":["http://a.example/cb"]}`, `{"redirect_uris":["custom:cb"]}`, `{"redirect_uris":[]}`, `{}`,
			`{"redirect_uris":["https://a.example/cb#x"]}`, `{"redirect_uris":["https://u:p@a.example/cb"]}`} {
			s.wantError(s.register(bad), "invalid_redirect_uri", bad)
		}
		for _, bad := range []string{`{"redirect_uris":["https://a.example/cb"],"Redirect_URIs":["https://b.example/cb"]}`,
			`{"redirect_uris":["https://a.example/cb"],"redirect_uris":["https://b.example/cb"]}`} {
			s.wantError(s.register(bad), "invalid_client_metadata", bad)
		}
		s.wantError(s.register(`[`), "invalid_client_metadata", "no JSON")
		s.wantError(s.register(`{"client_name":"`+strings.Repeat("x", 70<<10)+`"}`), "invalid_client_metadata", "70 KB")
		for range 100 {
			a = s.register(`{"redirect_uris":["https://a.example/cb"]}`)
		}
		if a.Status != 429 || a.Header.Get("Retry-After") == "" {
			s.t.Errorf("a flood of registrations: %d", a.Status)
		}
	})
}

func TestRegisterClient_Off(t *testing.T) {
	eachDB(t, func(s *server) {
		if a := s.register(`{"redirect_uris":["https://a.example/cb"]}`); a.Status != 404 {
			s.t.Errorf("%d %s", a.Status, a.Text)
		}
		if a := s.get("/auth/.well-known/oauth-authorization-server"); strings.Contains(a.Text, "registration_endpoint") {
			s.t.Error("the metadata names an endpoint that is not there")
		}
	}, func(c *auth.OAuthConfig) { c.Register = false })
}

func (s *server) get(path string) reply { return s.do(httptest.NewRequest("GET", base+path, nil)) }

func TestMetadata_ServerAndResources(t *testing.T) {
	eachDB(t, func(s *server) {
		for _, path := range []string{"/auth/.well-known/oauth-authorization-server", "/.well-known/oauth-authorization-server/auth",
			"/.well-known/oauth-authorization-server"} {
			a := s.get(path)
			for _, want := range []string{`"issuer":"` + issuer + `"`, `"code_challenge_methods_supported":["S256"]`, `"authorization_response_iss_parameter_supported":true`,
				`"client_id_metadata_document_supported":true`, `"registration_endpoint":"` + issuer + `/oauth/register"`} {
				if !strings.Contains(a.Text, want) {
					s.t.Errorf("%s lacks %s: %s", path, want, a.Text)
				}
			}
			if strings.Contains(a.Text, "offline_access") || a.Header.Get("Access-Control-Allow-Origin") != "*" {
				s.t.Errorf("%s: %s", path, a.Text)
			}
		}
		for path, resource := range map[string]string{"/.well-known/oauth-protected-resource": "", "/.well-known/oauth-protected-resource/mcp/sse": "/mcp/sse",
			"/.well-known/oauth-protected-resource/mcp": "/mcp", "/mcp/.well-known/oauth-protected-resource": "/mcp", "/.well-known/oauth-protected-resource/api/v1": "/api/v1"} {
			a := s.get(path)
			var m struct {
				Resource string
				Servers  []string       `json:"authorization_servers"`
				Scopes   []access.Scope `json:"scopes_supported"`
			}
			if err := json.Unmarshal([]byte(a.Text), &m); err != nil || m.Resource != base+resource ||
				fmt.Sprint(m.Servers) != "["+issuer+"]" || len(m.Scopes) != 15 {
				s.t.Errorf("%s: %s", path, a.Text)
			}
		}
	})
}

func TestIntrospect_OwnOrganisationOnly(t *testing.T) {
	eachDB(t, func(s *server) {
		a := s.tokens()
		_, admin := s.createKey(s.t, auth.Request{})
		_, caller := s.createKey(s.t, auth.Request{Scopes: []access.Scope{access.CallsRead}})
		other, err := s.orgs.Create(context.Background(), "Other", "GB")
		if err != nil {
			s.t.Fatal(err)
		}
		stranger, err := s.CreateKey(context.Background(), auth.Request{OrgID: other.ID, Name: "x", Scopes: access.RoleScopes("admin")})
		if err != nil {
			s.t.Fatal(err)
		}
		ask := func(token, with string) reply {
			return s.post("/auth/oauth/introspect", url.Values{"token": {token}}, "Authorization", "Bearer "+with)
		}
		for _, token := range []string{a.Access, a.Refresh} {
			if got := ask(token, admin); !got.Active || got.Subject != s.person.UserID ||
				got.Scope != "calls:read calls:write contacts:read" {
				s.t.Errorf("%d %s", got.Status, got.Text)
			}
		}
		if !ask(a.Access, a.Access).Active {
			s.t.Error("a token is told nothing of itself")
		}
		for what, got := range map[string]reply{"without the scope": ask(a.Access, caller), "from elsewhere": ask(a.Access, *stranger.Secret), "nonsense": ask("nonsense", admin)} {
			if got.Status != 200 || strings.TrimSpace(got.Text) != `{"active":false}` {
				s.t.Errorf("%s: %d %s", what, got.Status, got.Text)
			}
		}
		if got := ask(a.Access, "nonsense"); got.Status != 401 {
			s.t.Errorf("without a credential: %d", got.Status)
		}
		s.refresh(a.Refresh)
		if ask(a.Refresh, admin).Active {
			s.t.Error("a spent token is active")
		}
	})
}
