package mcp_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"soniq/e2e/rig"
)

const (
	fixedClient = "soniq-assistant"
	ownCallback = "http://127.0.0.1:45321/callback"
	ownVerifier = "a-verifier-of-more-than-forty-three-characters-0"
)

// tokens is the response of the token endpoint; Error is the reason of a refusal.
type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Scope   string
	Error   string
}

// grants authorises a program for the member, with all requested scopes except the unticked ones, and returns its
// tokens.
func (p *member) grants(resource, scope string, unticked ...string) tokens {
	p.t.Helper()
	sum := sha256.Sum256([]byte(ownVerifier))
	q := url.Values{"response_type": {"code"}, "client_id": {fixedClient}, "redirect_uri": {ownCallback}, "scope": {scope}, "resource": {resource},
		"state": {"s"}, "prompt": {"consent"}, "code_challenge_method": {"S256"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}}
	back, err := url.Parse(p.agrees("http://"+p.server.HTTP+"/auth/oauth/authorize?"+q.Encode(), unticked...))
	if err != nil {
		p.t.Fatal(err)
	}
	return p.exchange(url.Values{"grant_type": {"authorization_code"}, "code": {back.Query().Get("code")}, "code_verifier": {ownVerifier}})
}

// exchange sends a request to the token endpoint.
func (p *member) exchange(form url.Values) (got tokens) {
	p.t.Helper()
	form.Set("client_id", fixedClient)
	r, err := p.http.PostForm("http://"+p.server.HTTP+"/auth/oauth/token", form)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
		p.t.Fatalf("%s: %v", r.Status, err)
	}
	return got
}

// renewed returns the tokens for a refresh token.
func (p *member) renewed(t tokens) tokens {
	return p.exchange(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {t.Refresh}})
}

// shown returns the names of the tools in the list for a credential.
func shown(a *assistant) []string {
	a.t.Helper()
	list, err := a.session.ListTools(a.ctx, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// of returns the published tools of some scopes, in their order.
func of(scopes ...string) []string {
	var names []string
	for _, tool := range published {
		if slices.Contains(scopes, tool[1]) {
			names = append(names, tool[0])
		}
	}
	return names
}

func TestGrant_TickedScopesOnly(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{}, func(t *testing.T, s *rig.Server) {
		ada := signedIn(t, s)
		granted := ada.grants(address(s), "calls:read calls:write contacts:read", "calls:write")
		if granted.Scope != "calls:read contacts:read" {
			t.Fatalf("granted: %+v", granted)
		}
		c := &rig.Client{T: t, Server: s, Org: ada.org, Key: granted.Access, Prefix: "/api/v1"}
		for era := range eras {
			a := connect(t, c, era, nil)
			if got := shown(a); !slices.Equal(got, of("calls:read", "contacts:read")) {
				t.Errorf("%s: shown %v", era, got)
			}
			a.want("get_live_calls", nil)
		}
		r := once(t, c, "add_call_note", `{"call_id":"call_none","body":"x"}`)
		challenge := r.header.Get("WWW-Authenticate")
		if r.status != 403 || !strings.Contains(challenge, `error="insufficient_scope"`) || !strings.Contains(challenge, `scope="calls:read calls:write contacts:read"`) {
			t.Fatalf("a tool that was unticked: %d %q", r.status, challenge)
		}
		if got := ada.renewed(granted); got.Error != "invalid_grant" {
			t.Errorf("a program that only refreshes is not led to the person: %+v", got)
		}
		more := ada.grants(address(s), "calls:read calls:write contacts:read")
		c.Key = more.Access
		if r := once(t, c, "add_call_note", `{"call_id":"call_none","body":"x"}`); r.status != 200 || !strings.Contains(r.body, "not_found") {
			t.Errorf("after the person agreed: %d %s", r.status, r.body)
		}
	})
}

func TestSession_PerAccessToken(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	ada := signedIn(t, s)
	bob := newMember(t, s, ada.org, "bob@example.com", "admin")
	mine := ada.grants(address(s), "calls:read")
	opened := post(t, address(s), mine.Access, initialize)
	session := opened.header.Get("Mcp-Session-Id")
	if opened.status != 200 || session == "" {
		t.Fatalf("initialize: %d %s", opened.status, opened.body)
	}
	in := func(token string, header ...string) int {
		return post(t, address(s), token, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, append([]string{"Mcp-Session-Id", session}, header...)...).status
	}
	for who, token := range map[string]string{"another person": bob.grants(address(s), "calls:read").Access,
		"another grant of the same person": ada.grants(address(s), "calls:read").Access, "a key of the organisation": s.Key(ada.org, "live", "all").Key} {
		if got := in(token); got != 403 {
			t.Errorf("%s in the session: %d", who, got)
		}
	}
	if got := in(mine.Access, "Origin", "https://evil.example"); got != 403 {
		t.Errorf("a foreign page in the session: %d", got)
	}
	if got := in(ada.grants("http://"+s.HTTP, "calls:read").Access); got != 401 {
		t.Errorf("a token for the API: %d", got)
	}
	next := ada.renewed(mine)
	if got := in(next.Access); got != 200 {
		t.Errorf("its own, renewed: %d", got)
	}
	if got := ada.renewed(mine); got.Error != "invalid_grant" {
		t.Errorf("a refresh token used twice: %+v", got)
	}
	if got := in(next.Access); got != 401 {
		t.Errorf("after a refresh token was used twice: %d", got)
	}
}

func TestGoClient_LoginAndStepUp(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{})
	ada := signedIn(t, s)
	for name, way := range map[string]*auth.AuthorizationCodeHandlerConfig{
		"the known client": {PreregisteredClient: &oauthex.ClientCredentials{ClientID: fixedClient}, RedirectURL: ownCallback},
		"a client that is registered": {DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{
			Metadata: &oauthex.ClientRegistrationMetadata{ClientName: "an assistant", RedirectURIs: []string{ownCallback}}}},
	} {
		var asked []string
		way.AuthorizationCodeFetcher = func(_ context.Context, a *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			u, err := url.Parse(a.URL)
			if err != nil {
				return nil, err
			}
			asked = append(asked, u.Query().Get("scope"))
			back, err := url.Parse(ada.agrees(a.URL))
			q := back.Query()
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, err
		}
		handler, err := auth.NewAuthorizationCodeHandler(way)
		if err != nil {
			t.Fatal(err)
		}
		a := through(t, &sdk.StreamableClientTransport{Endpoint: address(s), HTTPClient: http.DefaultClient, OAuthHandler: handler}, nil)
		if got := shown(a); !slices.Equal(got, of("calls:read", "contacts:read", "memory:read")) {
			t.Errorf("%s: shown %v", name, got)
		}
		if code := a.refused("add_call_note", map[string]any{"call_id": "call_none", "body": "x"}); code != "not_found" {
			t.Errorf("%s: a tool that needs one scope more: %s", name, code)
		}
		if len(asked) != 2 || !strings.Contains(asked[1], "calls:write") || !strings.Contains(asked[1], "memory:read") {
			t.Errorf("%s: the person was asked for %q", name, asked)
		}
	}
}
