package crm_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/customer/contact"
	"soniq/internal/customer/crm"
	"soniq/internal/customer/crm/adapter"
	"soniq/internal/customer/crm/vendortest"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
)

// browse opens a consent page like a browser, gives consent, and returns the callback page.
func (h *fixture) browse(at string) *httptest.ResponseRecorder {
	h.t.Helper()
	at = h.begin(at)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a, err := client.Get(at)
	if err != nil {
		h.t.Fatal(err)
	}
	a.Body.Close()
	if a.StatusCode != http.StatusFound {
		h.t.Fatalf("the vendor answers %d", a.StatusCode)
	}
	return h.followRedirect(a.Header.Get("Location"))
}

// begin opens the page that begins an authorization, and returns the address of the vendor.
func (h *fixture) begin(at string) string {
	h.t.Helper()
	w := h.followRedirect(at)
	if w.Code != http.StatusSeeOther {
		h.t.Fatalf("the start of an authorization: %d %s", w.Code, w.Body)
	}
	return w.Header().Get("Location")
}

// followRedirect opens the callback page at the redirect URI.
func (h *fixture) followRedirect(at string) *httptest.ResponseRecorder {
	h.t.Helper()
	to, err := url.Parse(at)
	if err != nil || to.Host != "voice.test" {
		h.t.Fatalf("led back to %s", at)
	}
	mux := http.NewServeMux()
	h.Mount(mux)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, to.RequestURI(), nil))
	return w
}

// ownApp returns the settings for the customer's own app at the simulated vendor.
func ownApp(v *vendortest.Vendor) map[string]any {
	return map[string]any{"client_id": vendortest.Client, "client_secret": vendortest.Secret, "login_url": v.URL, "api_url": v.URL}
}

// createVendor creates a connection to a vendor.
func (h *fixture) createVendor(provider string, settings map[string]any) *optest.Answer {
	h.t.Helper()
	return h.do("POST", "/crm/connections", map[string]any{"provider": provider, "name": "The CRM", "settings": settings, "timeout_ms": 10_000})
}

// connectVendor creates a connection to a vendor and gives consent. It returns the connection's id.
func (h *fixture) connectVendor(provider string, settings map[string]any) string {
	h.t.Helper()
	c := h.createVendor(provider, settings).Want(201)
	if w := h.browse(c.Text("authorize_url")); w.Code != http.StatusOK {
		h.t.Fatalf("came back to %d %s", w.Code, w.Body)
	}
	if provider == "dynamics" { // it is copied first
		h.waitFor("a copy", "/crm/connections", func(a *optest.Answer) bool { return a.At("data.1.refreshed_at") != nil })
	}
	return c.Text("id")
}

// list returns the list of connections.
func (h *fixture) list() *optest.Answer {
	h.t.Helper()
	return h.do("GET", "/crm/connections", nil).Want(200)
}

func TestAuthorize_ConsentInBrowser(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, v := newFixture(t, d), vendortest.New(t, "hubspot")
		c := h.createVendor("hubspot", ownApp(v)).Want(201)
		if c.Text("status") != "auth_required" || c.Text("settings.client_secret") != "********" || !strings.HasPrefix(c.Text("authorize_url"), "https://voice.test"+crm.StartPath+"?") {
			t.Fatalf("connected %s", c.Bytes)
		}
		if a := h.lookup("+442079460018").Want(404); a.Text("sources.1.status") != "error" || len(v.Requests()) != 0 {
			t.Errorf("before anybody agreed: %s", a.Bytes)
		}
		if a := h.list(); a.Text("data.1.status") != "auth_required" || a.At("data.1.authorize_url") != nil {
			t.Errorf("shown %s", a.Bytes)
		}
		w := h.browse(c.Text("authorize_url"))
		if w.Code != 200 || !strings.Contains(w.Body.String(), "HubSpot is connected") || !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
			t.Fatalf("came back to %d %s", w.Code, w.Body)
		}
		if a := h.list(); a.Text("data.1.status") != "active" || a.At("data.1.last_error") != nil {
			t.Errorf("shown %s", a.Bytes)
		}
		if a := h.lookup("+442079460018").Want(200); a.Text("name") != "Ada Lovelace" || a.Text("source") != "The CRM" {
			t.Errorf("found %s", a.Bytes)
		}
		for _, sealed := range []string{`SELECT tokens FROM crm_grants`, `SELECT settings FROM crm_connections`} {
			var text []byte
			if err := d.Read(context.Background()).QueryRow(context.Background(), sealed).Scan(&text); err != nil ||
				strings.Contains(string(text), "access-") ||
				strings.Contains(string(text), vendortest.Secret) {
				t.Errorf("kept %q, %v", text, err)
			}
		}
		h.do("DELETE", "/crm/connections/"+c.Text("id"), nil).Want(204)
		// waits for a job, which publishes no event
		//nolint:forbidigo // polls a condition that publishes no event
		for began := time.Now(); v.ValidRefreshTokens() > 0; time.Sleep(10 * time.Millisecond) {
			if time.Since(began) > 20*time.Second {
				t.Fatal("disconnected, and the token is still good")
			}
		}
	})
}

// A connection is agreed to in the browser that began it, by a person of the organisation. A stranger who is led to the address, or to the
// vendor, connects nothing.
func TestAuthorize_BoundToBrowser(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, v := newFixture(t, d), vendortest.New(t, "hubspot")
		c := h.createVendor("hubspot", ownApp(v)).Want(201)
		mine, at := h.person, c.Text("authorize_url")
		h.person = access.Principal{}
		if w := h.followRedirect(at); w.Code != http.StatusSeeOther ||
			!strings.HasPrefix(w.Header().Get("Location"), "https://voice.test/account/login?next=%2Fcrm") {
			t.Errorf("nobody is signed in: %d %s", w.Code, w.Header().Get("Location"))
		}
		for _, other := range []access.Principal{{OrgID: "org_other", KeyID: "ses_2", Scopes: mine.Scopes}, {OrgID: h.org, KeyID: "ses_2", Scopes: []access.Scope{access.ContactsRead}}} {
			h.person = other
			if w := h.followRedirect(at); w.Code != http.StatusForbidden {
				t.Errorf("%+v: %d %s", other, w.Code, w.Body)
			}
		}
		h.person = mine
		vendor, _ := url.Parse(h.begin(at))
		back := "https://voice.test" + crm.CallbackPath + "?code=c&state=" + vendor.Query().Get("state")
		for _, other := range []access.Principal{{}, {OrgID: "org_other", KeyID: "ses_2", Scopes: mine.Scopes}, {OrgID: h.org, KeyID: "ses_3", Scopes: mine.Scopes}} {
			h.person = other
			if w := h.followRedirect(back); w.Code != http.StatusBadRequest || len(v.TokenRequests()) != 0 {
				t.Errorf("another browser came back: %d, %d codes exchanged", w.Code, len(v.TokenRequests()))
			}
			if w := h.followRedirect(at); w.Code == http.StatusSeeOther && !strings.Contains(w.Header().Get("Location"), "/account/login") {
				t.Errorf("another browser began again what was begun: %s", w.Header().Get("Location"))
			}
		}
		h.person = mine
		if w := h.browse(at); w.Code != http.StatusOK {
			t.Errorf("the browser that began it: %d %s", w.Code, w.Body)
		}
	})
}

func TestAuthorize_StateSingleUse(t *testing.T) {
	t.Parallel()
	h, v := newFixture(t, dbtest.SQLite(t)), vendortest.New(t, "hubspot")
	c := h.createVendor("hubspot", ownApp(v)).Want(201)
	again := "/crm/connections/" + c.Text("id") + "/authorize"
	back := func() string {
		a := h.do("POST", again, nil).Want(200)
		q, _ := url.Parse(h.begin(a.Text("authorize_url")))
		return "https://voice.test" + crm.CallbackPath + "?state=" + q.Query().Get("state")
	}
	if w := h.followRedirect(back() + "&error=access_denied"); w.Code != 200 || !strings.Contains(w.Body.String(), "not connected") {
		t.Errorf("who does not agree sees %d %s", w.Code, w.Body)
	}
	at := back()
	if w := h.followRedirect(at + "&code=made-up"); w.Code != http.StatusBadGateway ||
		strings.Contains(w.Body.String(), vendortest.Secret) {
		t.Errorf("a code of another: %d %s", w.Code, w.Body)
	}
	if w := h.followRedirect(at + "&code=made-up"); w.Code != http.StatusBadRequest {
		t.Errorf("a state came twice: %d", w.Code)
	}
	if w := h.followRedirect("https://voice.test" + crm.CallbackPath + "?state=" + strings.Repeat("x", 43) + "&code=c"); w.Code != http.StatusBadRequest {
		t.Errorf("a state nobody made: %d", w.Code)
	}
	at = back()
	h.credentials = revokedCredentials{}
	if w := h.followRedirect(at + "&code=c"); w.Code != http.StatusForbidden {
		t.Errorf("the credential is gone: %d", w.Code)
	}
	h.credentials = allCredentials{}
	at = back()
	h.now = func() time.Time { return time.Now().Add(11 * time.Minute) }
	if w := h.followRedirect(at + "&code=c"); w.Code != http.StatusBadRequest {
		t.Errorf("after eleven minutes: %d", w.Code)
	}
	if n := len(v.TokenRequests()); n != 1 {
		t.Errorf("%d codes were exchanged", n)
	}
}

// Two nodes, concurrent lookups, an expired token: it is renewed once, and the new refresh token is stored.
func TestRenew_OnceAcrossNodes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, v := newFixture(t, d), vendortest.New(t, "hubspot")
		v.SetTokenLife(5) // expired at once: a token is not used in its last seconds
		h.connectVendor("hubspot", ownApp(v))
		v.SetTokenLife(1800)
		v.SetTokenDelay(150 * time.Millisecond)
		nodes := []*crm.Service{h.Service, crm.New(h.config)}
		var all sync.WaitGroup
		for i := range 6 { // HubSpot accepts four searches a second
			all.Go(func() {
				if found, err := h.lookupDirect(nodes[i%2], "+442079460018"); err != nil || len(found) != 1 {
					t.Errorf("found %v, %v", found, err)
				}
			})
		}
		all.Wait()
		nodes[1].Close()
		renewed := 0
		for _, f := range v.TokenRequests() {
			if f.Get("grant_type") == "refresh_token" {
				renewed++
			}
		}
		if renewed != 1 || v.ValidRefreshTokens() != 1 {
			t.Errorf("renewed %d times, %d refresh tokens are good", renewed, v.ValidRefreshTokens())
		}
		v.RevokeTokens(false) // the vendor revokes the token before its expiry
		h.now = func() time.Time { return time.Now().Add(2 * time.Minute) }
		if found, err := h.lookupDirect(h.Service, "+442079460018"); err != nil || len(found) != 1 {
			t.Errorf("after the token was taken back: %v, %v", found, err)
		}
	})
}

// lookupDirect sends a lookup to the connected system.
func (h *fixture) lookupDirect(s *crm.Service, number string) ([]contact.Record, error) {
	all, err := s.Connected(context.Background(), h.org)
	if err != nil {
		return nil, err
	}
	q, err := h.contacts.Query(context.Background(), h.org, number)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if c.Live != nil {
			return c.Live.Lookup(context.Background(), q)
		}
	}
	return nil, fmt.Errorf("nothing is connected")
}

func TestRenew_RefusedRequiresConsent(t *testing.T) {
	t.Parallel()
	h, v := newFixture(t, dbtest.SQLite(t)), vendortest.New(t, "hubspot")
	v.SetTokenLife(5)
	id := h.connectVendor("hubspot", ownApp(v))
	v.RevokeTokens(true)
	h.lookup("+442079460018").Want(404)
	if a := h.list(); a.Text("data.1.status") != "auth_required" || !strings.Contains(a.Text("data.1.last_error"), "invalid_grant") {
		t.Errorf("shown %s", a.Bytes)
	}
	before := len(v.TokenRequests())
	h.lookup("+442079460019").Want(404)
	if n := len(v.TokenRequests()); n != before {
		t.Errorf("a refused token was tried again")
	}
	c := h.do("POST", "/contacts", `{"first_name":"Ada","emails":[{"value":"ada@example.com"}]}`).Want(201)
	h.waitFor("refused contact", "/crm/sync-jobs", func(a *optest.Answer) bool { return a.Text("data.0.status") == "failed" })
	v.SetTokenLife(1800)
	if w := h.browse(h.do("POST", "/crm/connections/"+id+"/authorize", nil).Want(200).Text("authorize_url")); w.Code != 200 {
		t.Fatalf("came back to %d", w.Code)
	}
	if a := h.lookup("+442079460018").Want(200); a.Text("name") != "Ada Lovelace" {
		t.Errorf("found %s", a.Bytes)
	}
	h.waitFor("what was refused", "/contacts/"+c.Text("id"), func(a *optest.Answer) bool { return a.Text("external_refs.0.sync_status") == "synced" })
}

func TestSettings_OperatorSecretsOnlyToVendor(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.createVendor("hubspot", nil).Refused("validation_failed", "settings.client_id required")
	h.config.Apps["hubspot"] = adapter.App{ClientID: "op", ClientSecret: "s3cret"}
	h.createVendor("hubspot", map[string]any{"login_url": "https://thief.example"}).Refused("validation_failed", "settings.login_url not_available")
	h.createVendor("hubspot", map[string]any{"client_id": "x"}).Refused("validation_failed", "settings.client_secret required")
	h.createVendor("hubspot", map[string]any{"token": "t", "api_url": "http://10.0.0.1"}).Refused("validation_failed", "settings.api_url invalid_url")
	c := h.createVendor("hubspot", nil).Want(201)
	if at := h.begin(c.Text("authorize_url")); !strings.HasPrefix(at, "https://app.hubspot.com/oauth/authorize?") || !strings.Contains(at, "client_id=op") || strings.Contains(at, "s3cret") {
		t.Errorf("sent to %s", at)
	}
	h.do("PATCH", "/crm/connections/"+c.Text("id"), `{"settings":{"token":"pat-1"}}`).Want(200)
	h.do("POST", "/crm/connections/"+c.Text("id")+"/authorize", nil).Want(409).Refused("invalid_state")
	h.do("POST", "/crm/connections/crm_nobody/authorize", nil).Want(404)
}

// TestUpdate_MovedConnectionLosesTokens changes the address of a connection. Its secrets and OAuth tokens are dropped.
func TestUpdate_MovedConnectionLosesTokens(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, v, thief := newFixture(t, d), vendortest.New(t, "hubspot"), vendortest.New(t, "hubspot")
		id := h.connectVendor("hubspot", ownApp(v))
		h.lookup("+442079460018").Want(200)
		for _, member := range []string{"api_url", "login_url"} {
			h.do("PATCH", "/crm/connections/"+id, map[string]any{"settings": map[string]any{member: thief.URL}}).Want(422).
				Refused("validation_failed", "settings.client_secret secret_required")
		}
		h.do("PATCH", "/crm/connections/"+id, map[string]any{"name": "Another"}).Want(200)
		if a := h.list(); a.Text("data.1.status") != "active" {
			t.Errorf("another name: %s", a.Bytes)
		}
		moved := h.do("PATCH", "/crm/connections/"+id, map[string]any{"settings": map[string]any{"api_url": thief.URL, "client_secret": "made up"}}).Want(200)
		if moved.Text("status") != "auth_required" {
			t.Errorf("moved: %s", moved.Bytes)
		}
		h.lookup("+442079460018", "&fresh=true")
		if got := thief.Requests(); len(got) != 0 {
			t.Errorf("the thief got %+v", got)
		}
	})
}

// A directory and a lookup by templates need their secrets again at another host.
func TestUpdate_MovedSystemNeedsSecrets(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	id := h.connect(lookupSettings, fieldMap).Want(201).Text("id")
	h.do("PATCH", "/crm/connections/"+id, `{"settings":{"lookup":{"url":"https://evil.example/?q={{phone}}"}}}`).Want(422).
		Refused("validation_failed", "settings.auth.token secret_required", "settings.headers.X-Tenant secret_required")
	directory := h.do("POST", "/crm/connections", `{"provider":"ldap","name":"Staff","settings":{"url":"ldaps://directory.example","base_dn":"dc=example","bind_dn":"cn=a","password":"s3cret"}}`).
		Want(201).Text("id")
	for _, moved := range []string{`"url":"ldaps://evil.example"`, `"url":"ldaps://directory.example:1636"`, `"url":"ldap://directory.example","start_tls":true`} {
		h.do("PATCH", "/crm/connections/"+directory, `{"settings":{`+moved+`}}`).Want(422).Refused("validation_failed", "settings.password secret_required")
	}
}
