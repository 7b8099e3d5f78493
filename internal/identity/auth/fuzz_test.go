package auth

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzClientDocument checks that a client metadata document adds no redirect URI other than https or loopback, and no name of more than
// one line.
func FuzzClientDocument(f *testing.F) {
	const id = "https://client.example/about.json"
	f.Add(id, []byte(`{"client_id":"`+id+`","client_name":"A","redirect_uris":["https://client.example/cb"]}`))
	f.Add("http://127.0.0.1/x", []byte(`{}`))
	f.Fuzz(func(t *testing.T, id string, text []byte) {
		c, err := parseDocument(id, text)
		if err != nil {
			return
		}
		if c.ID != id || strings.ContainsAny(c.Name, "\r\n\u202e") || len([]rune(c.Name)) > 300 {
			t.Errorf("client %+v", c)
		}
		for _, r := range c.Redirects {
			if u, err := url.Parse(r); err != nil || u.Scheme != "https" && !IsLoopback(r) {
				t.Errorf("leads to %q", r)
			}
		}
	})
}

// FuzzAuthorizationRequest checks that an authorization request never redirects to a URI that is not the client's.
func FuzzAuthorizationRequest(f *testing.F) {
	o := NewOAuth(&Service{brand: "soniq"}, OAuthConfig{BaseURL: "https://voice.example"})
	f.Add("http://127.0.0.1:1/callback", "response_type=code&scope=calls:read&code_challenge_method=S256&state=x&resource=https://voice.example/mcp")
	f.Add("https://evil.example/callback", "state=%ff")
	f.Add("http://localhost:1@evil.example/callback", "")
	f.Fuzz(func(t *testing.T, redirect, query string) {
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		q.Set("client_id", "soniq-assistant")
		q.Set("redirect_uri", redirect)
		a, to, err := o.ParseAuthorizationRequest(t.Context(), q)
		if err == nil {
			to = o.DenyURL(a)
		}
		if to == "" {
			return
		}
		u, err := url.Parse(to)
		if err != nil || !IsLoopback(to) || u.Query().Get("iss") != "https://voice.example/auth" || u.Query().Get("error") == "" {
			t.Errorf("%q leads to %q", redirect, to)
		}
	})
}
