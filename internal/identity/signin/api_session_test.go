package signin_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/identity/signin"
	"soniq/internal/identity/user"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
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

// A session does not outlive a suspension of its person or organisation, and neither signs in meanwhile.
func TestSession_EndsWithPersonAndOrganisation(t *testing.T) {
	eachDB(t, func(p *fixture) {
		ctx := context.Background()
		v := p.signedInBrowser("ada@example.com", "admin")
		status := func(to string) error {
			_, err := p.users.Update(access.With(ctx, access.Principal{OrgID: p.org.ID, Role: "owner", Scopes: access.All()}),
				&user.UpdateIn{OneIn: user.OneIn{ID: v.user.ID}, Body: user.Patch{Status: op.Change[string]{Set: true, V: to}}})
			return err
		}
		for what, change := range map[string]struct{ end, back func() error }{
			"a person": {func() error { return status("suspended") }, func() error { return status("active") }},
			"an organisation": {func() error { return p.orgs.SetStatus(ctx, p.org.ID, org.Suspended) },
				func() error { return p.orgs.SetStatus(ctx, p.org.ID, org.Active) }},
		} {
			if v = p.newBrowserOf(v.user); v.signIn("ada@example.com", good).path != "/account" {
				p.t.Fatalf("%s before: at %s", what, v.path)
			}
			if err := change.end(); err != nil {
				p.t.Fatal(err)
			}
			if v.get("/account"); v.path != "/account/login" {
				p.t.Errorf("%s is suspended, and the session leads to %s", what, v.path)
			}
			if _, err := v.verify(); err == nil {
				p.t.Errorf("%s is suspended, and the session is a credential", what)
			}
			if v = p.newBrowserOf(v.user); v.signIn("ada@example.com", good).status != 401 {
				p.t.Errorf("%s is suspended, and signs in: %d at %s", what, v.status, v.path)
			}
			if err := change.back(); err != nil {
				p.t.Fatal(err)
			}
		}
	})
}

// The session that waited for a code ends with the sign-in. Scripts and other sites do not get the cookie.
func TestSession_NewCookieAtSignIn(t *testing.T) {
	eachDB(t, func(p *fixture) {
		v := p.signedInBrowser("ada@example.com", "admin")
		v.get("/account/security")
		v.send("/account/totp/start")
		seed := seedOn(v.text)
		v.send("/account/totp/confirm", "code", signin.Code(seed, p.now))
		p.now = p.now.Add(time.Minute)
		u, _ := url.Parse(p.http.URL)
		half, whole := p.newBrowser(), p.newBrowser()
		whole.signIn("ada@example.com", good)
		half.client.Jar.SetCookies(u, whole.client.Jar.Cookies(u))
		half.get("/account/login")
		half.wantText("Enter your code")
		if whole.send("/account/code", "code", signin.Code(seed, p.now)); whole.path != "/account" {
			p.t.Fatalf("not signed in: %s", whole.text)
		}
		if half.get("/account/login"); half.path != "/account/login" || strings.Contains(half.text, "Enter your code") {
			p.t.Errorf("the session from before the code goes on, at %s", half.path)
		}
		found := 0
		for _, c := range whole.cookies {
			if strings.HasSuffix(c.Name, "_session") && c.Value != "" {
				if found++; !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
					p.t.Errorf("cookie %s", c.Raw)
				}
			}
		}
		if found == 0 {
			p.t.Error("no cookie of a session was set")
		}
	})
}

// TestSession_EndsItsPhone checks that the telephones of a session end with it: at sign-out, when another browser is signed out, and for
// all browsers when the password changes.
func TestSession_EndsItsPhone(t *testing.T) {
	eachDB(t, func(p *fixture) {
		v, other := p.signedInBrowser("ada@example.com", "admin"), p.newBrowser()
		first := p.sessions()
		other.signIn("ada@example.com", good)
		second := slices.DeleteFunc(p.sessions(), func(id string) bool { return slices.Contains(first, id) })
		v.get("/account/security")
		v.send("/account/sessions/" + second[0] + "/end")
		p.wantPhonesEnded(second...)
		v.send("/account/logout")
		p.wantPhonesEnded(first...)
		v.signIn("ada@example.com", good)
		other.signIn("ada@example.com", good)
		both := p.sessions()
		v.get("/account/security")
		v.send("/account/password", "current", good, "password", "another good one", "again", "another good one")
		p.wantPhonesEnded(both...)
	})
}

// TestSession_ExpiryEndsItsPhone checks that the telephones of sessions end when they expire by age, except while their user is in a call.
func TestSession_ExpiryEndsItsPhone(t *testing.T) {
	eachDB(t, func(p *fixture) {
		p.signedInBrowser("ada@example.com", "admin")
		first := p.sessions()
		p.wantSwept(0)
		p.now = p.now.Add(20 * time.Hour)
		p.newBrowser().signIn("ada@example.com", good)
		p.now = p.now.Add(5 * time.Hour)
		p.phones.inCall = true
		p.wantSwept(0)
		p.wantPhonesEnded()
		p.phones.inCall = false
		p.wantSwept(1)
		p.wantPhonesEnded(first...)
		if left := p.sessions(); len(left) != 1 || slices.Contains(first, left[0]) {
			p.t.Errorf("sessions %v are left, want the newer one alone", left)
		}
	})
}

// wantSwept removes what has expired, and checks how much it was.
func (p *fixture) wantSwept(want int64) {
	p.t.Helper()
	if gone, err := p.pages.Sweep(context.Background()); err != nil || gone != want {
		p.t.Errorf("%d sessions, links and failures are removed, want %d (%v)", gone, want, err)
	}
}

// sessions returns the ids of the sessions in progress.
func (p *fixture) sessions() []string {
	p.t.Helper()
	all, err := db.Strings(context.Background(), p.db.Read(context.Background()), "sessions", `SELECT id FROM account_sessions ORDER BY id`)
	if err != nil {
		p.t.Fatal(err)
	}
	return all
}

// wantPhonesEnded checks whose telephones ended since the last call.
func (p *fixture) wantPhonesEnded(sessions ...string) {
	p.t.Helper()
	for i, id := range sessions {
		sessions[i] = p.org.ID + " " + id
	}
	slices.Sort(p.phones.sessions)
	if slices.Sort(sessions); !slices.Equal(p.phones.sessions, sessions) {
		p.t.Errorf("telephones ended of %v, want %v", p.phones.sessions, sessions)
	}
	p.phones.sessions = nil
}

// seedOn returns the seed of an authenticator on a page.
func seedOn(text string) string {
	m := regexp.MustCompile(`<code>([A-Z2-7]{32})</code>`).FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return m[1]
}
