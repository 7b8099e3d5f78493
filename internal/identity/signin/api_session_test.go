package signin_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"testing"
	"time"

	"soniq/internal/identity/signin"
	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
)

// verify returns the principal of the session of the browser.
func (v *testBrowser) verify() (access.Principal, error) {
	v.t.Helper()
	u, err := url.Parse(v.http.URL)
	if err != nil {
		v.t.Fatal(err)
	}
	r := &http.Request{Header: http.Header{}}
	for _, c := range v.client.Jar.Cookies(u) {
		r.AddCookie(c)
	}
	return v.pages.VerifySession(context.Background(), v.pages.SessionToken(r), access.Live, here)
}

// The password that was entered at the sign-in, or on the page that asks for it again, counts for fifteen minutes.
func TestConfirm_CountsForAWhile(t *testing.T) {
	eachDB(t, func(p *fixture) {
		v := p.signedInBrowser("ada@example.com", "owner")
		want := func(what string, unconfirmed bool) {
			p.t.Helper()
			who, err := v.verify()
			if err != nil || who.Unconfirmed != unconfirmed || who.UserID != v.user.ID || who.UserName != v.user.Name ||
				who.Kind != access.BrowserSession {
				p.t.Errorf("%s: %+v, %v", what, who, err)
			}
		}
		want("after the sign-in", false)
		v.get("/account/confirm?next=/account/keys")
		if v.path != "/account/keys" {
			p.t.Errorf("asked too early, at %s", v.path)
		}
		p.now = p.now.Add(op.ConfirmedFor)
		want("later", true)
		v.get("/account/confirm?next=/account/keys")
		v.wantText("Enter your password again")
		v.send("/account/confirm", "current", "wrong password")
		if v.wantText("password is wrong"); v.status != 403 {
			p.t.Errorf("a wrong password: %d", v.status)
		}
		want("after a wrong password", true)
		v.send("/account/confirm", "current", good)
		if v.path != "/account/keys" {
			p.t.Errorf("led to %s: %s", v.path, v.text)
		}
		want("confirmed", false)
		form := url.Values{"action": {"/account/confirm"}, "current": {good}}
		p.now = p.now.Add(op.ConfirmedFor)
		if v.post(form); v.status != 403 {
			p.t.Errorf("a form of another page: %d", v.status)
		}
		want("by a form of another page", true)
	})
}

// A session that waits for the code of the authenticator is no credential. The checks of an open stream notice the end of a session.
func TestVerifySession_WholeOnesOnly(t *testing.T) {
	eachDB(t, func(p *fixture) {
		v := p.signedInBrowser("ada@example.com", "admin")
		who, err := v.verify()
		if err != nil || p.pages.RevalidateSession(context.Background(), who) != nil {
			p.t.Fatalf("%+v, %v", who, err)
		}
		if before := who; p.pages.RevalidateSession(context.Background(), before) == nil {
			before.Role = "owner"
			if p.pages.RevalidateSession(context.Background(), before) == nil {
				p.t.Error("a stream that was opened with another role goes on")
			}
		}
		v.get("/account/security")
		v.send("/account/totp/start")
		seed := regexp.MustCompile(`<code>([A-Z2-7]{32})</code>`).FindStringSubmatch(v.text)[1]
		v.send("/account/totp/confirm", "code", signin.Code(seed, p.now))
		other := p.newBrowser()
		other.signIn("ada@example.com", good)
		other.wantText("Enter your code")
		if got, err := other.verify(); err == nil {
			p.t.Errorf("half a session is %+v", got)
		}
		v.send("/account/logout")
		if p.pages.RevalidateSession(context.Background(), who) == nil {
			p.t.Error("an ended session is valid")
		}
		p.now = p.now.Add(time.Minute)
		other.send("/account/code", "code", signin.Code(seed, p.now))
		if who, err = other.verify(); err != nil {
			p.t.Fatal(err)
		}
		p.now = p.now.Add(25 * time.Hour)
		if _, err := other.verify(); err == nil || p.pages.RevalidateSession(context.Background(), who) == nil {
			p.t.Errorf("a session without use for a day is valid: %v", err)
		}
	})
}
