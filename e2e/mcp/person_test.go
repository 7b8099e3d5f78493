package mcp_test

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// person is a user who uses the pages of the server in a browser that runs no scripts.
type person struct {
	t       testing.TB
	browser *http.Client
	base    string
	page    string // the current page
	at      *url.URL
}

// newPerson returns a signed-in owner who has chosen a password.
func newPerson(t testing.TB, s *rig.Server, email string) *person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &person{t: t, browser: &http.Client{Jar: jar, Timeout: patience}, base: "http://" + s.HTTP}
	p.visit(s.Command("admin", "users", "add", email, "--first-name", "Ada"))
	p.send("/account/welcome", "password", "correct horse battery", "again", "correct horse battery")
	return p
}

// visit opens a page.
func (p *person) visit(address string) {
	p.t.Helper()
	r, err := p.browser.Get(address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.shown(r)
}

func (p *person) shown(r *http.Response) {
	p.t.Helper()
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	p.page, p.at = string(b), r.Request.URL
}

var (
	hidden = regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)"`)
	ticked = regexp.MustCompile(`name="(\w+)" value="([^"]*)" checked`)
)

// send submits a form of the page with its values and the given fields.
func (p *person) send(action string, fields ...string) {
	p.t.Helper()
	_, form, found := strings.Cut(p.page, `action="`+action)
	if !found {
		p.t.Fatalf("no form for %s on the page %s: %s", action, p.at, p.page)
	}
	to, form, _ := strings.Cut(form, `"`)
	form, _, _ = strings.Cut(form, "</form>")
	all := url.Values{}
	for _, m := range append(hidden.FindAllStringSubmatch(form, -1), ticked.FindAllStringSubmatch(form, -1)...) {
		all.Add(m[1], html.UnescapeString(m[2]))
	}
	for i := 0; i+1 < len(fields); i += 2 {
		all.Set(fields[i], fields[i+1])
	}
	r, err := p.browser.PostForm(p.base+action+to, all)
	if err != nil {
		p.t.Fatal(err)
	}
	p.shown(r)
}

// allow opens the authorization address that a program printed, and gives consent. A user who has consented before
// sees no form.
func (p *person) allow(address string) {
	p.t.Helper()
	p.visit(address)
	if strings.Contains(p.page, `action="/auth/oauth/authorize"`) {
		p.send("/auth/oauth/authorize", "answer", "allow")
	}
	if !strings.Contains(p.page, "You are logged in") {
		p.t.Fatalf("led to %s: %s", p.at, p.page)
	}
}

// await waits for a value from another goroutine.
func await[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(limit.Hang(0)):
		t.Fatalf("%s: not within %s", what, patience)
		panic("not reached")
	}
}
