package mcp_test

import (
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// member is a signed-in member of an organisation. Its browser supports forms and cookies and does not follow
// redirects.
type member struct {
	t      testing.TB
	server *rig.Server
	http   http.Client
	org    string
	email  string
}

// signedIn returns a new user, who owns an organisation of their own.
func signedIn(t testing.TB, s *rig.Server) *member {
	t.Helper()
	org := s.Command("admin", "orgs", "create", "--name", "Org of "+t.Name(), "--country", "US")
	return newMember(t, s, org, "ada@example.com", "owner")
}

// newMember returns a new user of an organisation, who has chosen a password.
func newMember(t testing.TB, s *rig.Server, org, email, role string) *member {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &member{t: t, server: s, org: org, email: email, http: http.Client{Jar: jar, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	out := strings.Fields(s.Command("admin", "users", "add", email, "--first-name", "Ada", "--org", org, "--role", role))
	link, err := url.Parse(out[len(out)-1])
	if err != nil {
		t.Fatal(err)
	}
	page, _ := p.get(link.Path)
	if _, to := p.send(link.Path, page, "password", "correct horse battery", "again", "correct horse battery"); to == "" {
		t.Fatalf("the password was not taken at %s: %s", link.Path, page)
	}
	return p
}

// get returns a page and its redirect.
func (p *member) get(path string) (page, to string) {
	p.t.Helper()
	a, err := p.http.Get("http://" + p.server.HTTP + path)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.read(a)
}

func (p *member) read(a *http.Response) (page, to string) {
	p.t.Helper()
	defer func() { _ = a.Body.Close() }()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b), a.Header.Get("Location")
}

var (
	hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`)
	tickedScope = regexp.MustCompile(`<input type="checkbox" id="[^"]+" name="scope" value="([^"]+)" checked`)
)

// send submits the form of a page with its hidden fields. The other fields are passed in pairs.
func (p *member) send(path, page string, fields ...string) (answer, to string) {
	p.t.Helper()
	form := url.Values{}
	for _, m := range hiddenField.FindAllStringSubmatch(page, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	r, err := http.NewRequest(http.MethodPost, "http://"+p.server.HTTP+path, strings.NewReader(form.Encode()))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://"+p.server.HTTP)
	a, err := p.http.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.read(a)
}

// answers submits allow or deny to a program's authorization request, except for the unticked scopes. It returns the
// redirect, or "" if there is none.
func (p *member) answers(address, answer string, unticked ...string) string {
	p.t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		p.t.Fatal(err)
	}
	page, to := p.get(u.RequestURI())
	if to != "" || !strings.Contains(page, `name="answer"`) {
		return to
	}
	fields := []string{"answer", answer}
	for _, m := range tickedScope.FindAllStringSubmatch(page, -1) {
		if !slices.Contains(unticked, m[1]) {
			fields = append(fields, "scope", m[1])
		}
	}
	_, to = p.send(u.Path, page, fields...)
	return to
}

// agrees submits allow, and returns the redirect.
func (p *member) agrees(address string, unticked ...string) string {
	p.t.Helper()
	to := p.answers(address, "allow", unticked...)
	if to == "" {
		p.t.Fatalf("%s leads nowhere", address)
	}
	return to
}

// letsIn submits allow and follows the redirect to the program. The program may start to listen a moment later, and
// may exit as soon as it has the request.
func (p *member) letsIn(address string, unticked ...string) {
	p.t.Helper()
	to := p.agrees(address, unticked...)
	rig.Until(p.t, "the program listens", time.Minute, func() bool {
		a, err := http.Get(to)
		if err == nil {
			_ = a.Body.Close()
		}
		return !errors.Is(err, syscall.ECONNREFUSED)
	})
}
