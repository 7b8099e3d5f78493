package signin_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"soniq/internal/identity/signin"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

func TestSignIn_WithChosenPassword(t *testing.T) {
	eachDB(t, func(p *fixture) {
		u := p.addUser("ada@example.com", "owner")
		v := p.newBrowser()
		v.get(*u.Invitation.URL)
		v.wantText("ada@example.com", "Choose a password")
		link := v.path
		v.send("/account/welcome/", "password", "short", "again", "short")
		v.wantText("at least 12 characters")
		v.send("/account/welcome/", "password", "password1234", "again", "password1234")
		v.wantText("too easily guessed")
		v.send("/account/welcome/", "password", good, "again", "other")
		v.wantText("not the same")
		v.send("/account/welcome/", "password", good, "again", good)
		v.wantText("owner of Acme", "make calls, hold, transfer")
		other := p.newBrowser()
		if other.get(link); other.status != 404 {
			p.t.Errorf("the link works twice: %d", other.status)
		}
		other.get("/account/keys")
		other.wantText("Sign in")
		other.send("/account/login", "email", "ADA@example.com", "password", "wrong password")
		other.wantText("is wrong")
		other.send("/account/login", "email", "ADA@example.com", "password", good)
		if other.path != "/account/keys" {
			p.t.Errorf("signed in at %s", other.path)
		}
		other.send("/account/logout")
		if other.get("/account"); other.path != "/account/login" {
			p.t.Error("signed out, and in")
		}
		p.now = p.now.Add(25 * time.Hour)
		if v.get("/account"); v.path != "/account/login" {
			p.t.Error("signed in after a day without a visit")
		}
	})
}

func TestSignIn_WaitsAfterFailures(t *testing.T) {
	eachDB(t, func(p *fixture) {
		p.signedInBrowser("ada@example.com", "agent")
		for _, email := range []string{"ada@example.com", "nobody@example.com"} {
			v := p.newBrowser()
			for range 5 {
				v.signIn(email, "wrong password")
				v.wantText("The e-mail address or the password is wrong.")
			}
			v.signIn(email, good)
			if v.wantText("Try again in 30 seconds"); v.status != 429 {
				p.t.Errorf("status %d", v.status)
			}
			p.now = p.now.Add(31 * time.Second)
			v.signIn(email, "wrong password")
			v.signIn(email, good)
			v.wantText("Try again in 60 seconds")
			p.now = p.now.Add(61 * time.Second)
		}
		v := p.newBrowser()
		if v.signIn("ada@example.com", good); v.path != "/account" {
			p.t.Error("locked out for ever")
		}
	})
}

func TestSignIn_AsksForTOTPCode(t *testing.T) {
	eachDB(t, func(p *fixture) {
		v := p.signedInBrowser("ada@example.com", "admin")
		v.get("/account/security")
		v.send("/account/totp/start")
		v.wantText("data:image/png;base64,")
		seed := regexp.MustCompile(`<code>([A-Z2-7]{32})</code>`).FindStringSubmatch(v.text)[1]
		v.send("/account/totp/confirm", "code", "000000")
		v.wantText("This code is wrong")
		v.send("/account/totp/confirm", "code", signin.Code(seed, p.now))
		v.wantText("recovery codes")
		recovery := regexp.MustCompile(`<li>(\w{4}-\w{4}-\w{4})</li>`).FindAllStringSubmatch(v.text, -1)
		if len(recovery) != 10 {
			p.t.Fatalf("%d recovery codes", len(recovery))
		}
		other := p.newBrowser()
		other.signIn("ada@example.com", good)
		other.wantText("Enter your code")
		if other.get("/account/keys"); strings.Contains(other.text, "New key") {
			p.t.Error("a password alone lets in")
		}
		other.get("/account/login")
		other.send("/account/code", "code", signin.Code(seed, p.now))
		other.wantText("was used already")
		p.now = p.now.Add(time.Minute)
		other.send("/account/code", "code", signin.Code(seed, p.now))
		if other.path != "/account" {
			p.t.Fatalf("not signed in: %s", other.text)
		}
		for i, want := range []bool{true, false} {
			third := p.newBrowser()
			third.signIn("ada@example.com", good)
			third.send("/account/code", "code", recovery[0][1])
			if (third.path == "/account") != want {
				p.t.Errorf("a recovery code, time %d: at %s", i+1, third.path)
			}
		}
		found, err := p.pages.MFA(context.Background(), p.db.Read(context.Background()), p.org.ID, []string{v.user.ID})
		if err != nil || !found[v.user.ID] {
			p.t.Errorf("the record does not tell it: %v, %v", found, err)
		}
		v.get("/account/security")
		v.send("/account/totp/off", "current", "wrong password")
		v.wantText("current password is wrong")
		v.send("/account/totp/off", "current", good)
		v.wantText("Set up an authenticator")
	})
}

func TestTOTP_RFC6238Vectors(t *testing.T) {
	t.Parallel()
	seed := []byte("12345678901234567890")
	for at, code := range map[int64]string{59: "287082", 1111111109: "081804", 1234567890: "005924", 20000000000: "353130"} { // RFC 6238, appendix B
		for off, want := range map[int64]bool{-60: false, -30: true, 0: true, 30: true, 60: false} {
			if step, ok := signin.TOTPStep(seed, code, time.Unix(at/30*30+off, 0), 0); ok != want || ok && step != at/30 {
				t.Errorf("%s of %d, entered after %d s: step %d, %v", code, at, off, step, ok)
			}
		}
		if _, ok := signin.TOTPStep(seed, code, time.Unix(at, 0), at/30); ok {
			t.Errorf("%s is accepted twice", code)
		}
	}
	if _, ok := signin.TOTPStep(seed, "", time.Unix(59, 0), 0); ok {
		t.Error("no code is accepted")
	}
}

func TestForms_CrossSiteAndFramesRefused(t *testing.T) {
	eachDB(t, func(p *fixture) {
		v := p.signedInBrowser("ada@example.com", "owner")
		v.get("/account/keys")
		form := v.form("/account/keys")
		for what, spoil := range map[string]func(){"without its token": func() { form.Set("form", "") }, "with another's": func() {
			other := p.newBrowser()
			other.get("/account/login")
			form.Set("form", other.form("/account/login").Get("form"))
		}} {
			spoil()
			if v.post(withFields(form, "action", "/account/keys", "name", "x", "scope", "calls:read")); v.status != 403 {
				p.t.Errorf("%s: %d", what, v.status)
			}
		}
		v.get("/account/keys")
		form = v.form("/account/keys")
		v.header.Set("Sec-Fetch-Site", "cross-site")
		if v.post(withFields(form, "name", "x", "scope", "calls:read")); v.status != 403 {
			p.t.Errorf("from another site: %d", v.status)
		}
		v.header.Set("Sec-Fetch-Dest", "iframe")
		for _, path := range []string{"/account/keys", "/auth/oauth/authorize?" + p.request().Encode()} {
			if v.get(path); v.status != 403 {
				p.t.Errorf("%s in a frame: %d", path, v.status)
			}
		}
		if all, err := p.keys.VisibleKeys(context.Background(), access.Principal{OrgID: p.org.ID, Scopes: access.All()}); err != nil ||
			len(all) != 0 {
			p.t.Errorf("%d keys were made, %v", len(all), err)
		}
	})
}

func withFields(form url.Values, fields ...string) url.Values {
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return form
}

var secret = regexp.MustCompile(`soniq_(live|test|partner)_[0-9A-Za-z]{36}`)

func TestCreateKey_AtMostScopesOfUser(t *testing.T) {
	eachDB(t, func(p *fixture) {
		agent, owner := p.signedInBrowser("bob@example.com", "agent"), p.signedInBrowser("ada@example.com", "owner")
		agent.get("/account/keys")
		form := agent.form("/account/keys")
		agent.post(withFields(form, "name", "mine", "scope", "users:admin"))
		agent.wantText("does not hold users:admin")
		agent.get("/account/keys")
		agent.post(withFields(agent.form("/account/keys"), "name", "p", "kind", "partner", "scope", "calls:read"))
		agent.wantText("only a partner key can make partner keys")
		agent.get("/account/keys")
		agent.post(withFields(agent.form("/account/keys"), "name", "mine", "scope", "calls:read"))
		key := secret.FindString(agent.text)
		who, err := p.keys.Verify(context.Background(), key, access.Live, here)
		if err != nil || who.UserID != agent.user.ID || fmt.Sprint(who.Scopes) != "[calls:read]" {
			p.t.Errorf("%+v, %v", who, err)
		}
		if agent.get("/account/keys"); secret.MatchString(agent.text) {
			p.t.Error("the key is shown twice")
		}
		owner.get("/account/keys")
		owner.wantText("mine", "Partner key")
		f := owner.form("/account/keys")
		f["scope"] = []string{"partners:read", "partners:write"}
		owner.post(withFields(f, "action", "/account/keys", "name", "partner", "kind", "partner"))
		if who, err := p.keys.Verify(context.Background(), secret.FindString(owner.text), access.Live, here); err != nil ||
			who.Kind != access.PartnerKey {
			p.t.Errorf("%+v, %v\n%s", who, err, owner.text)
		}
		if agent.get("/account/keys"); strings.Contains(agent.text, "(partner)") {
			p.t.Error("an agent sees the organisation's keys")
		}
		agent.send("/account/keys/key_", "name", "")
		rotated := secret.FindString(agent.text)
		if _, err := p.keys.Verify(context.Background(), rotated, access.Live, here); err != nil || rotated == key {
			p.t.Errorf("rotated: %v", err)
		}
		id := who.KeyID
		other := agent.form("/account/keys")
		other.Set("action", "/account/keys/"+id+"/revoke")
		agent.post(other)
		if _, err := p.keys.Verify(context.Background(), key, access.Live, here); err == nil {
			p.t.Error("a revoked key works")
		}
		var lines int
		const audit = `SELECT COUNT(*) FROM audit WHERE org_id = $1 AND operation IN ('apikeys.create', 'apikeys.rotate', 'apikeys.delete') AND credential = 'session'`
		if err := p.db.Read(context.Background()).QueryRow(context.Background(), audit, p.org.ID).Scan(&lines); err != nil || lines != 4 {
			p.t.Errorf("%d lines in the audit log, %v", lines, err)
		}
	})
}

const verifier = "a-verifier-of-more-than-forty-three-characters-0"

// request returns an authorization request.
func (p *fixture) request(changes ...string) url.Values {
	sum := sha256.Sum256([]byte(verifier))
	return withFields(url.Values{"response_type": {"code"}, "client_id": {"soniq-assistant"}, "redirect_uri": {"http://127.0.0.1:1/callback"}, "state": {"a+b&c"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}, "scope": {"calls:read calls:write"},
		"resource": {p.http.URL + "/mcp"}}, changes...)
}

func (v *testBrowser) authorizationResponse() url.Values {
	u, err := url.Parse(v.redirectedTo)
	if err != nil || v.redirectedTo == "" {
		v.t.Fatalf("led to %q from %s: %s", v.redirectedTo, v.path, v.text)
	}
	if q := u.Query(); q.Get("iss") == v.http.URL+"/auth" && q.Get("state") == "a+b&c" {
		return q
	}
	v.t.Errorf("led to %s: wrong iss or state", v.redirectedTo)
	return u.Query()
}

func (v *testBrowser) redeem(code string) string {
	v.t.Helper()
	a, err := http.PostForm(v.http.URL+"/auth/oauth/token", url.Values{"grant_type": {"authorization_code"}, "code": {code}, "client_id": {"soniq-assistant"},
		"code_verifier": {verifier}})
	if err != nil {
		v.t.Fatal(err)
	}
	defer a.Body.Close()
	b, _ := io.ReadAll(a.Body)
	return string(b)
}

func TestConsent_UserChoosesScopes(t *testing.T) {
	eachDB(t, func(p *fixture) {
		v := p.signedInBrowser("ada@example.com", "admin")
		v.send("/account/logout")
		ask := "/auth/oauth/authorize?" + p.request().Encode()
		v.get(ask)
		v.wantText("Sign in")
		v.send("/account/login", "email", "ada@example.com", "password", good)
		v.wantText("soniq-assistant", "127.0.0.1:1", "program on your own computer", "make calls, hold, transfer", "ada@example.com", "Acme")
		v.send("/auth/oauth/authorize", "answer", "deny")
		if q := v.authorizationResponse(); q.Get("error") != "access_denied" {
			p.t.Errorf("denied: %v", q)
		}
		v.get(ask)
		v.send("/auth/oauth/authorize", "answer", "allow", "scope", "calls:read") // the user unticks calls:write
		if got := v.redeem(v.authorizationResponse().Get("code")); !strings.Contains(got, `"scope":"calls:read"`) {
			p.t.Errorf("tokens %s", got)
		}
		v.get("/auth/oauth/authorize?" + p.request("scope", "calls:read").Encode())
		v.wantText("program on your own computer") // any program could name this client: the user is asked again
		if v.redirectedTo != "" {
			p.t.Errorf("led to %s without a page", v.redirectedTo)
		}
		v.get(ask)
		v.wantText("make calls, hold, transfer") // the request contains a new scope
		v.get("/account/assistants")
		v.wantText("soniq-assistant", "calls:read")
		v.send("/account/assistants/gra_")
		v.wantText("No assistant")
		v.get("/auth/oauth/authorize?" + p.request("scope", "calls:read").Encode())
		v.wantText("soniq-assistant")
		v.post(withFields(v.form("/auth/oauth/authorize"), "answer", "allow", "scope", "users:admin"))
		if q := v.authorizationResponse(); q.Get("error") != "access_denied" {
			p.t.Errorf("ticked what was not asked for: %v", q)
		}
		for _, bad := range [][]string{{"client_id", "nobody"}, {"redirect_uri", "https://evil.example/"}} {
			v.get("/auth/oauth/authorize?" + p.request(bad...).Encode())
			if v.redirectedTo != "" || v.status != 400 {
				p.t.Errorf("%v: %d, led to %q", bad, v.status, v.redirectedTo)
			}
		}
		v.get("/auth/oauth/authorize?" + p.request("code_challenge_method", "plain").Encode())
		if q := v.authorizationResponse(); q.Get("error") != "invalid_request" {
			p.t.Errorf("plain: %v", q)
		}
	})
}

func TestChangePassword_EndsOtherSessions(t *testing.T) {
	eachDB(t, func(p *fixture) {
		v := p.signedInBrowser("ada@example.com", "agent")
		other := p.newBrowser()
		other.signIn("ada@example.com", good)
		v.get("/account/security")
		v.wantText("This one", "127.0.0.1")
		v.send("/account/password", "current", "wrong password", "password", "another good one", "again", "another good one")
		v.wantText("current password is wrong")
		v.send("/account/password", "current", good, "password", "another good one", "again", "another good one")
		if v.path != "/account/security" || strings.Contains(v.text, "role=\"alert\"") {
			p.t.Errorf("not changed: %s", v.text)
		}
		if other.get("/account"); other.path != "/account/login" {
			p.t.Error("the other browser is signed in")
		}
		other.signIn("ada@example.com", "another good one")
		v.get("/account/security")
		v.send("/account/sessions/ses_")
		if other.get("/account"); other.path != "/account/login" {
			p.t.Error("a browser that was signed out is signed in")
		}
		link, err := p.pages.Link(context.Background(), p.org.ID, v.user.ID)
		if err != nil {
			p.t.Fatal(err)
		}
		other.get(strings.TrimPrefix(link, p.http.URL))
		other.send("/account/welcome/", "password", "a third good one", "again", "a third good one")
		if other.path != "/account" {
			p.t.Errorf("the link did not let in: %s", other.text)
		}
		if v.get("/account"); v.path != "/account/login" {
			p.t.Error("a password that was set anew leaves old sessions")
		}
		if err := p.db.TxContext(context.Background(), func(ctx context.Context, tx db.Querier) error {
			return p.pages.RemoveUser(ctx, tx, p.org.ID, v.user.ID)
		}); err != nil {
			p.t.Fatal(err)
		}
		if other.get("/account"); other.path != "/account/login" {
			p.t.Error("who was removed is signed in")
		}
	})
}

func TestLocal_NoOpenRedirect(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{"/account/keys": "/account/keys", "/auth/oauth/authorize?x=1": "/auth/oauth/authorize?x=1", "https://evil.example/account": "/account",
		"/console/calls?phone=1": "/console/calls?phone=1", "/consolex": "/account", "//evil.example/console/": "/account", "/\t/evil.example/console/": "/account",
		"//evil.example/account": "/account", `/\evil.example`: "/account", "/account\\..\\x": "/account", "/v1": "/account", "": "/account", "javascript:x": "/account", "/accountx": "/account"} {
		if got := signin.Local(next); got != want {
			t.Errorf("%q: %q, want %q", next, got, want)
		}
	}
}
