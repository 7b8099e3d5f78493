package server

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"soniq/internal/api/eventstream"
	"soniq/internal/api/rest"
	"soniq/internal/config"
	"soniq/internal/control"
	"soniq/internal/identity/auth"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db/pgtest"
	"soniq/internal/platform/op"
	"soniq/internal/platform/visibility"
	"soniq/internal/platform/visibility/visibilitytest"
)

// sessions is a platform with its HTTP server, without telephony and jobs.
type sessions struct {
	*testing.T
	p   *Platform
	id  string // of the organisation
	url string
}

// eachSessions runs a test on SQLite, and on PostgreSQL if there is one.
func eachSessions(t *testing.T, run func(s *sessions)) {
	t.Parallel()
	flags := map[string][]string{"sqlite": nil}
	if address := os.Getenv("SONIQ_TEST_POSTGRES"); address != "" {
		flags["postgres"] = []string{"--db", pgtest.New(t, address)}
	}
	for name, more := range flags {
		t.Run(name, func(t *testing.T) { run(newSessions(t, more)) })
	}
}

func newSessions(t *testing.T, flags []string) *sessions {
	t.Helper()
	c, err := config.Parse(append([]string{"--data", t.TempDir(), "--transcriber", "off"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	p, err := Open(t.Context(), c, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	p.streams = eventstream.New(eventstream.Config{Outbox: p.outbox, Credentials: credentials{p}, Changed: auth.Changed,
		Heartbeat: time.Hour}) // each one checks the credential
	h, err := rest.New(rest.Config{Pipeline: &op.Pipeline{DB: p.db, Sealer: p.seal, Log: log, Visibility: visibility.Guard{DB: p.db},
		Limiter: access.NewLimiter(time.Now), AttemptsPerMinute: 1000}, Operations: p.operations(), Keys: p.keys, Sessions: p.signin,
		Delegation: p.keys, Readiness: alwaysReady{}, Metrics: http.NotFoundHandler(), Log: log, Webhooks: p.webhooks,
		EntryPoints: []rest.EntryPoint{p.oauth, p.signin}, Origins: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(func() { p.streams.Close(); server.Close() })
	s := &sessions{T: t, p: p, url: server.URL}
	s.id, err = p.CreateOrg(t.Context(), control.OrgRequest{Name: "Acme", Country: "GB"})
	s.must(err)
	return s
}

func (s *sessions) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// exec runs a statement whose first argument is the organisation.
func (s *sessions) exec(text string, args ...any) {
	s.Helper()
	visibilitytest.Org{T: s, DB: s.p.db, ID: s.id}.Exec(text, args...)
}

const testPassword = "correct horse battery"

// sessionPage is a browser in which a user is signed in.
type sessionPage struct {
	*sessions
	client *http.Client
	user   string
}

var formToken = regexp.MustCompile(`name="form" value="([^"]*)"`)

// signIn adds a user with a role, who chooses a password.
func (s *sessions) signIn(email, role string) *sessionPage {
	s.Helper()
	link, _, err := s.p.addUser(s.Context(), control.UserRequest{Email: email, Role: role})
	s.must(err)
	u, err := url.Parse(link)
	s.must(err)
	jar, err := cookiejar.New(nil)
	s.must(err)
	v := &sessionPage{sessions: s, client: &http.Client{Jar: jar}}
	v.submit(u.Path, u.Path, "password", testPassword, "again", testPassword)
	v.user = v.get("/api/v1/me").text("user.id")
	return v
}

// submit fills in a form of the account page.
func (v *sessionPage) submit(from, to string, fields ...string) {
	v.Helper()
	r, err := v.client.Get(v.url + from)
	v.must(err)
	b, _ := io.ReadAll(r.Body)
	r.Body.Close()
	m := formToken.FindSubmatch(b)
	if m == nil {
		v.Fatalf("no form at %s: %s", from, b)
	}
	form := url.Values{"form": {string(m[1])}}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	if r, err = v.client.PostForm(v.url+to, form); err != nil {
		v.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != 200 {
		v.Fatalf("the form of %s: %d", from, r.StatusCode)
	}
}

// pageReply is the response to a request.
type pageReply struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

// do sends a request as a page of this server does. headers replace its headers; one without a value removes it.
func (v *sessionPage) do(method, path, body string, headers ...string) pageReply {
	v.Helper()
	r, err := http.NewRequestWithContext(v.Context(), method, v.url+path, strings.NewReader(body))
	v.must(err)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method != "GET" {
		r.Header.Set("Soniq-Page", "1")
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Del(name)
		for part := range strings.SplitSeq(value, " and ") {
			if part != "" {
				r.Header.Add(name, part)
			}
		}
	}
	a, err := v.client.Do(r)
	v.must(err)
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	v.must(err)
	return pageReply{v.T, a.StatusCode, a.Header, b}
}

func (v *sessionPage) get(path string, headers ...string) pageReply {
	v.Helper()
	return v.do("GET", path, "", headers...)
}

func (r pageReply) want(what string, status int, code string) pageReply {
	r.t.Helper()
	if r.status != status || code != "" && r.text("code") != code {
		r.t.Errorf("%s: %d %s, want %d %s", what, r.status, r.body, status, code)
	}
	return r
}

// text returns the text at a path such as user.id.
func (r pageReply) text(path string) string {
	var v any
	_ = json.Unmarshal(r.body, &v)
	for name := range strings.SplitSeq(path, ".") {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	text, _ := v.(string)
	return text
}
