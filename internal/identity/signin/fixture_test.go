package signin_test

import (
	"context"
	"encoding/json"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"soniq/internal/identity/auth"
	"soniq/internal/identity/org"
	"soniq/internal/identity/signin"
	"soniq/internal/identity/user"
	"soniq/internal/identity/user/usertest"
	"soniq/internal/platform/access"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
	"soniq/internal/platform/seal"
)

var here = netip.MustParseAddr("127.0.0.1")

const good = "correct horse battery"

// fixture is a server with account pages.
type fixture struct {
	t      *testing.T
	db     *db.DB
	now    time.Time
	from   netip.Addr // source address of the browsers
	orgs   *org.Service
	org    org.Organization
	users  *user.Service
	keys   *auth.Service
	pages  *signin.Service
	phones endedPhones
	http   *httptest.Server
}

func newFixture(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	p := &fixture{t: t, db: d, from: here, now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	now, b := func() time.Time { return p.now }, bus.New()
	sealer, err := seal.New()
	if err != nil {
		t.Fatal(err)
	}
	p.orgs = org.New(d, b, now)
	if p.org, err = p.orgs.Create(context.Background(), "Acme", "GB"); err != nil {
		t.Fatal(err)
	}
	c := usertest.Config(d, p.orgs, &event.Outbox{DB: d, Bus: b, Clock: clock.Func(func() time.Time { return p.now })}, b, now)
	factors := &struct{ *signin.Service }{} // constructed later
	c.Logins, c.Invites = factors, &user.Invites{Seal: sealer, Jobs: &job.Queue{Bus: b, Clock: clock.Func(now)}}
	p.users = user.New(c)
	p.keys = auth.New(d, p.orgs, sealer, b, now, "soniq")
	mux := http.NewServeMux()
	p.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r.WithContext(op.WithClientAddress(r.Context(), p.from)))
	}))
	t.Cleanup(p.http.Close)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	oauth := auth.NewOAuth(p.keys, auth.OAuthConfig{BaseURL: p.http.URL, Register: true, Log: log})
	p.pages = signin.New(signin.Config{DB: d, Orgs: p.orgs, Users: p.users, Keys: p.keys, OAuth: oauth, Seal: sealer, Bus: b,
		Clock: clock.Func(now), BaseURL: p.http.URL, Limiter: access.NewLimiter(now),
		Brand: "soniq", Log: log, Messages: noMessages{}, Phones: &p.phones})
	factors.Service = p.pages
	oauth.Mount(mux)
	p.pages.Mount(mux)
	return p
}

// registerClient registers an OAuth client with a redirect URI.
func (p *fixture) registerClient(redirect string) (id string) {
	p.t.Helper()
	a, err := http.Post(p.http.URL+"/auth/oauth/register", "application/json", strings.NewReader(`{"client_name":"Client","redirect_uris":["`+redirect+`"]}`))
	if err != nil {
		p.t.Fatal(err)
	}
	defer a.Body.Close()
	var c struct {
		ID string `json:"client_id"`
	}
	if err := json.NewDecoder(a.Body).Decode(&c); err != nil || c.ID == "" {
		p.t.Fatalf("client not registered: %d %v", a.StatusCode, err)
	}
	return c.ID
}

func (p *fixture) addUser(email, role string) user.User {
	p.t.Helper()
	u, err := p.users.Create(context.Background(), p.org.ID, user.Fresh{Email: email, FirstName: "Ada", Role: role})
	if err != nil {
		p.t.Fatal(err)
	}
	return u
}

// signedInBrowser returns the signed-in browser of a new user.
func (p *fixture) signedInBrowser(email, role string) *testBrowser {
	p.t.Helper()
	u := p.addUser(email, role)
	v := p.newBrowser()
	v.get(*u.Invitation.URL)
	v.send("/account/welcome/", "password", good, "again", good)
	if v.path != "/account" {
		p.t.Fatalf("after the invitation at %s: %s", v.path, v.text)
	}
	v.user = u
	return v
}

// testBrowser keeps cookies, follows redirects on the server, and submits the forms of pages.
type testBrowser struct {
	*fixture
	client       *http.Client
	header       http.Header
	user         user.User
	text         string
	path         string
	status       int
	redirectedTo string // redirect target on another server
	cookies      []*http.Cookie
}

func (p *fixture) newBrowser() *testBrowser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	v := &testBrowser{fixture: p, header: http.Header{}}
	v.client = &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		v.cookies = append(v.cookies, r.Response.Cookies()...)
		if "http://"+r.URL.Host != p.http.URL {
			v.redirectedTo = r.URL.String()
			return http.ErrUseLastResponse
		}
		return nil
	}}
	return v
}

// newBrowserOf returns another browser of a user.
func (p *fixture) newBrowserOf(u user.User) *testBrowser {
	v := p.newBrowser()
	v.user = u
	return v
}

func (v *testBrowser) do(r *http.Request) {
	v.t.Helper()
	r.Header = v.header.Clone()
	if r.Method == "POST" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	v.redirectedTo = ""
	a, err := v.client.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	v.text, v.path, v.status = string(b), a.Request.URL.Path, a.StatusCode
	if v.status >= 500 {
		v.t.Fatalf("%s: %d %s", v.path, v.status, v.text)
	}
	for name, want := range map[string]string{"X-Frame-Options": "DENY", "Cache-Control": "no-store"} {
		if v.redirectedTo == "" && a.Header.Get(name) != want {
			v.t.Errorf("%s: %s is %q", v.path, name, a.Header.Get(name))
		}
	}
}

func (v *testBrowser) get(path string) {
	v.t.Helper()
	r, err := http.NewRequest("GET", v.http.URL+path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	v.do(r)
}

var hidden = regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)"`)

// form returns the unchanged values of a form on the page: hidden fields and ticked boxes.
func (v *testBrowser) form(action string) url.Values {
	v.t.Helper()
	for _, f := range strings.Split(v.text, "<form ")[1:] {
		f, _, _ = strings.Cut(f, "</form>")
		if !strings.Contains(f, `action="`+action) {
			continue
		}
		all := url.Values{}
		for _, m := range hidden.FindAllStringSubmatch(f, -1) {
			all.Add(m[1], html.UnescapeString(m[2]))
		}
		for _, m := range regexp.MustCompile(`name="scope" value="([^"]*)" checked`).FindAllStringSubmatch(f, -1) {
			all.Add("scope", m[1])
		}
		all.Set("action", regexp.MustCompile(`action="([^"]*)"`).FindStringSubmatch("action=\"" + strings.SplitN(f, `action="`, 2)[1])[1])
		return all
	}
	v.t.Fatalf("no form for %s on the page:\n%s", action, v.text)
	return nil
}

// send submits the form on the page with the given fields.
func (v *testBrowser) send(action string, fields ...string) {
	v.t.Helper()
	form := v.form(action)
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	v.post(form)
}

func (v *testBrowser) post(form url.Values) {
	v.t.Helper()
	to := form.Get("action")
	form.Del("action")
	r, err := http.NewRequest("POST", v.http.URL+to, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	v.do(r)
}

func (v *testBrowser) wantText(texts ...string) {
	v.t.Helper()
	for _, text := range texts {
		if !strings.Contains(html.UnescapeString(v.text), text) {
			v.t.Errorf("%s (%d) does not show %q:\n%s", v.path, v.status, text, v.text)
		}
	}
}

func (v *testBrowser) signIn(email, password string) *testBrowser {
	v.t.Helper()
	v.get("/account/login")
	v.send("/account/login", "email", email, "password", password)
	return v
}

func eachDB(t *testing.T, run func(p *fixture)) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) { run(newFixture(t, d)) })
}

// endedPhones records the sessions whose telephones end.
type endedPhones struct {
	sessions []string
	inCall   bool // each user is in a call
}

// InCall implements signin.Phones.
func (e *endedPhones) InCall(context.Context, db.Querier, string, string) (bool, error) {
	return e.inCall, nil
}

// SessionEnded implements signin.Phones.
func (e *endedPhones) SessionEnded(_ context.Context, _ db.Querier, org, session string) error {
	e.sessions = append(e.sessions, org+" "+session)
	return nil
}

// noMessages is an installation without voicemail.
type noMessages struct{}

// Message implements signin.Messages.
func (noMessages) Message(context.Context, string) (signin.Message, error) {
	return signin.Message{}, op.NotFound("message")
}

// Sound implements signin.Messages.
func (noMessages) Sound(context.Context, string) (io.ReadSeekCloser, time.Time, error) {
	return nil, time.Time{}, op.NotFound("message")
}
