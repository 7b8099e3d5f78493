package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/internal/control"
	"soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/limit"
	"soniq/internal/platform/op"
	"soniq/internal/platform/visibility/visibilitytest"
)

const newContact = `{"first_name":"Ada","last_name":"Lovelace"}`

// contacts returns the number of stored contacts.
func (v *sessionPage) contacts() int {
	v.Helper()
	var n int
	v.must(v.p.db.Read(v.Context()).QueryRow(v.Context(), `SELECT COUNT(*) FROM contacts WHERE org_id = $1`, v.id).Scan(&n))
	return n
}

func TestBrowserSession_PagesOfThisServerOnly(t *testing.T) {
	eachSessions(t, func(s *sessions) {
		v := s.signIn("ada@example.com", "agent")
		me := v.get("/v1/me").want("a page reads", 200, "")
		if me.text("credential.type") != "session" || me.text("credential.kind") != "session" || me.text("user.role") != "agent" {
			t.Errorf("me is %s", me.body)
		}
		v.do("POST", "/api/v1/contacts", newContact).want("a page writes", 201, "")
		before := v.contacts()
		for what, header := range map[string]string{"no header": "Sec-Fetch-Site", "another site": "Sec-Fetch-Site: cross-site",
			"another port": "Sec-Fetch-Site: same-site", "a typed address": "Sec-Fetch-Site: none",
			"another case": "Sec-Fetch-Site: Same-Origin", "two sites": "Sec-Fetch-Site: same-origin and cross-site"} {
			v.get("/api/v1/me", header).want("read, "+what, 401, "unauthenticated")
			v.do("POST", "/api/v1/contacts", newContact, header).want("write, "+what, 401, "unauthenticated")
		}
		for _, header := range []string{"Soniq-Page", "Soniq-Page: 0", "Soniq-Page: true"} {
			for method, path := range map[string]string{"POST": "/api/v1/contacts", "PUT": "/api/v1/users/" + v.user + "/dnd",
				"PATCH": "/api/v1/users/" + v.user, "DELETE": "/api/v1/users/" + v.user} {
				v.do(method, path, newContact, header).want(method+" with "+header, 401, "unauthenticated")
			}
		}
		form := url.Values{"name": {"Eve"}}.Encode()
		for _, site := range []string{"same-origin", "same-site", "cross-site"} {
			v.do("POST", "/api/v1/contacts", form, "Sec-Fetch-Site: "+site, "Soniq-Page", "Content-Type: application/x-www-form-urlencoded").
				want("a form from "+site, 401, "unauthenticated")
			v.do("POST", "/api/v1/contacts", newContact, "Sec-Fetch-Site: "+site, "Soniq-Page", "Content-Type: text/plain").
				want("a form with JSON from "+site, 401, "unauthenticated")
		}
		if n := v.contacts(); n != before {
			t.Errorf("%d contacts were added", n-before)
		}
		v.get("/sandbox/v1/me").want("in the sandbox", 403, "wrong_environment")
		v.get("/api/v1/me", "On-Behalf-Of: "+s.id).want("for a customer", 403, "insufficient_scope")
	})
}

// A request with Authorization is that of its credential, whatever the cookie.
func TestBrowserSession_NotBesideAuthorization(t *testing.T) {
	eachSessions(t, func(s *sessions) {
		v := s.signIn("ada@example.com", "owner")
		for _, header := range []string{"Authorization: Bearer nonsense", "Authorization: Basic YTpi", "Authorization: Bearer"} {
			v.get("/api/v1/me", header).want(header, 401, "unauthenticated")
		}
		key, err := s.p.CreateKey(s.Context(), control.KeyRequest{Org: s.id, Scopes: "calls:read", Kind: "standard", Env: "live",
			Name: "x"})
		s.must(err)
		if me := v.get("/api/v1/me", "Authorization: Bearer "+key).want("with a key", 200, ""); me.text("credential.type") != "api_key" {
			t.Errorf("me is %s", me.body)
		}
		v.do("POST", "/api/v1/contacts", newContact, "Authorization: Bearer "+key).want("beyond the key", 403, "insufficient_scope")
	})
}

// Pages of other origins never get the credential: not by CORS, and not the header of pages.
func TestBrowserSession_NoCORS(t *testing.T) {
	eachSessions(t, func(s *sessions) {
		v := s.signIn("ada@example.com", "agent")
		ask := v.do("OPTIONS", "/api/v1/contacts", "", "Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "Soniq-Page",
			"Access-Control-Request-Method: POST", "Access-Control-Request-Headers: soniq-page").want("OPTIONS", 204, "")
		if ask.header.Get("Access-Control-Allow-Origin") != "*" || ask.header.Get("Access-Control-Allow-Credentials") != "" ||
			strings.Contains(strings.ToLower(ask.header.Get("Access-Control-Allow-Headers")), "soniq-page") {
			t.Errorf("allowed: %v", ask.header)
		}
		a := v.get("/api/v1/me", "Origin: https://evil.example").want("read", 200, "")
		if a.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("allowed: %v", a.header)
		}
		v.do("OPTIONS", "/api/v1/nothing", "").want("OPTIONS of nothing", 404, "not_found")
	})
}

// The end of a session, a suspension and another role count for the next request.
func TestBrowserSession_EndsAtOnce(t *testing.T) {
	eachSessions(t, func(s *sessions) {
		ada, bob := s.signIn("ada@example.com", "owner"), s.signIn("bob@example.com", "agent")
		bob.get("/api/v1/users").want("an agent lists users", 403, "insufficient_scope")
		ada.get("/api/v1/users").want("an owner lists users", 200, "")
		dnd := func(status string) string { return `{"status":"` + status + `"}` }
		ada.do("PATCH", "/api/v1/users/"+bob.user, dnd("suspended")).want("suspend", 200, "")
		bob.get("/api/v1/me").want("suspended", 401, "unauthenticated")
		ada.do("PATCH", "/api/v1/users/"+bob.user, dnd("active")).want("resume", 200, "")
		bob.get("/api/v1/me").want("resumed", 200, "")
		ada.do("PATCH", "/api/v1/users/"+bob.user, `{"role":"admin"}`).want("raise", 200, "")
		bob.get("/api/v1/users").want("an administrator lists users", 200, "")
		ada.do("PATCH", "/api/v1/users/"+bob.user, `{"role":"viewer"}`).want("lower", 200, "")
		bob.do("POST", "/api/v1/contacts", newContact).want("a viewer writes", 403, "insufficient_scope")
		cookies := bob.client.Jar.Cookies(mustParse(s, s.url))
		bob.submit("/account", "/account/logout")
		bob.client.Jar.SetCookies(mustParse(s, s.url), cookies)
		bob.get("/api/v1/me").want("signed out", 401, "unauthenticated")
		s.must(s.p.orgs.SetStatus(s.Context(), s.id, org.Suspended))
		ada.get("/api/v1/me").want("of a suspended organisation", 401, "unauthenticated")
	})
}

func mustParse(s *sessions, address string) *url.URL {
	s.Helper()
	u, err := url.Parse(address)
	s.must(err)
	return u
}

func TestBrowserSession_AuditedWithItsUser(t *testing.T) {
	eachSessions(t, func(s *sessions) {
		v := s.signIn("ada@example.com", "owner")
		v.do("POST", "/api/v1/contacts", newContact).want("write", 201, "")
		const q = `SELECT credential, user_id, key_id FROM audit WHERE org_id = $1 AND operation = 'contacts.create'`
		var credential, user, key string
		s.must(s.p.db.Read(s.Context()).QueryRow(s.Context(), q, s.id).Scan(&credential, &user, &key))
		if credential != "session" || user != v.user || !strings.HasPrefix(key, "ses_") {
			t.Errorf("%s %s %s", credential, user, key)
		}
	})
}

// An agent's page sees the agent's calls alone.
func TestBrowserSession_SeesCallsOfTheUser(t *testing.T) {
	eachSessions(t, func(s *sessions) {
		v := s.signIn("ada@example.com", "agent")
		o := visibilitytest.Org{T: t, DB: s.p.db, ID: s.id}
		o.Call("call_own")
		o.Call("call_other")
		o.Leg("call_own", v.user)
		v.get("/api/v1/calls/call_own").want("the own call", 200, "")
		v.get("/api/v1/calls/call_other").want("another call", 404, "not_found")
		if list := v.get("/api/v1/calls/live").want("calls in progress", 200, ""); bytes.Contains(list.body, []byte("call_other")) {
			t.Errorf("the list has another call: %s", list.body)
		}
	})
}

// Fifteen minutes after the password, sensitive changes need it again. Everything else goes on.
func TestBrowserSession_SensitiveChangesNeedPassword(t *testing.T) {
	eachSessions(t, func(s *sessions) {
		ada, bob := s.signIn("ada@example.com", "owner"), s.signIn("bob@example.com", "agent")
		long := func() {
			s.exec(`UPDATE account_sessions SET confirmed_at = $2 WHERE org_id = $1`, db.At(time.Now().Add(-op.ConfirmedFor-time.Second)))
		}
		const key, hook = `{"name":"billing","scopes":["calls:read"]}`, `{"url":"https://hooks.example.com/x","events":["call.ended"]}`
		made := ada.do("POST", "/api/v1/api-keys", key).want("make a key", 201, "")
		webhook := ada.do("POST", "/api/v1/webhooks", hook).want("add a webhook", 201, "").text("id")
		long()
		const again = "reauthentication_required"
		refused := ada.do("POST", "/api/v1/api-keys", key).want("make a key, later", 403, again)
		if refused.text("confirm_at") != "/account/confirm" {
			t.Errorf("the remedy is not named: %s", refused.body)
		}
		ada.do("POST", "/api/v1/api-keys/"+made.text("id")+"/rotate", `{}`).want("rotate a key", 403, again)
		ada.do("POST", "/api/v1/webhooks", hook).want("add a webhook, later", 403, again)
		ada.do("POST", "/api/v1/webhooks/"+webhook+"/rotate-secret", `{}`).want("rotate a secret", 403, again)
		ada.do("PATCH", "/api/v1/users/"+bob.user, `{"role":"owner"}`).want("make an owner", 403, again)
		ada.do("POST", "/api/v1/users", `{"email":"eve@example.com","first_name":"Eve","role":"owner"}`).want("add an owner", 403, again)
		ada.do("DELETE", "/api/v1/partners/org_1?confirm=x", ``).want("close a customer", 403, again)
		ada.do("PATCH", "/api/v1/users/"+bob.user, `{"role":"supervisor"}`).want("another role", 200, "")
		bob.do("POST", "/api/v1/api-keys", key).want("without the scope", 403, "insufficient_scope")
		ada.submit("/account/confirm", "/account/confirm", "current", testPassword)
		ada.do("PATCH", "/api/v1/users/"+bob.user, `{"role":"owner"}`).want("make an owner, confirmed", 200, "")
		ada.do("POST", "/api/v1/api-keys", key).want("make a key, confirmed", 201, "")
		long()
		secret, err := s.p.CreateKey(s.Context(), control.KeyRequest{Org: s.id, Scopes: "all", Kind: "standard", Env: "live",
			Name: "admin"})
		s.must(err)
		ada.do("POST", "/api/v1/api-keys", key, "Authorization: Bearer "+secret).want("a key makes a key", 201, "")
	})
}

// A session has few streams at once. They end with it.
func TestBrowserSession_Streams(t *testing.T) {
	eachSessions(t, func(s *sessions) {
		v := s.signIn("ada@example.com", "agent")
		var open []io.ReadCloser
		for range limit.EventStreamsOfSession.Int() {
			open = append(open, v.stream(200))
		}
		v.stream(429).Close()
		v.stream(401, "Sec-Fetch-Site: same-site").Close()
		v.submit("/account", "/account/logout")
		for _, body := range open {
			_, err := io.Copy(io.Discard, body) // ends with the stream
			if err != nil && !strings.Contains(err.Error(), "EOF") {
				t.Errorf("a stream ended with %v", err)
			}
			body.Close()
		}
	})
}

// stream opens the event stream as EventSource does.
func (v *sessionPage) stream(status int, headers ...string) io.ReadCloser {
	v.Helper()
	ctx, cancel := context.WithTimeout(v.Context(), 2*time.Minute) // against hanging only
	v.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", v.url+"/api/v1/events/stream", nil)
	v.must(err)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Accept", "text/event-stream")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	a, err := v.client.Do(r)
	v.must(err)
	if a.StatusCode != status {
		b, _ := io.ReadAll(a.Body)
		v.Fatalf("the stream: %d %s, want %d", a.StatusCode, b, status)
	}
	return a.Body
}

// Scopes of a session are those of the role, no more.
func TestBrowserSession_ScopesOfRole(t *testing.T) {
	eachSessions(t, func(s *sessions) {
		for _, role := range access.Roles {
			v := s.signIn(role+"@example.com", role)
			var me struct{ Scopes []access.Scope }
			s.must(json.Unmarshal(v.get("/api/v1/me").want(role, 200, "").body, &me))
			want := access.RoleScopes(role)
			if access.Above(role, "supervisor") {
				want = access.All()
			}
			if slices.Sort(me.Scopes); !slices.Equal(me.Scopes, slices.Sorted(slices.Values(want))) {
				t.Errorf("%s has %v", role, me.Scopes)
			}
		}
	})
}
