package auth_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"soniq/internal/identity/auth"
	"soniq/internal/identity/user"
	"soniq/internal/identity/user/usertest"
	"soniq/internal/platform/access"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
)

// server is an authorization server with one user.
type server struct {
	*fixture
	t      *testing.T
	db     *db.DB
	oauth  *auth.OAuth
	config auth.OAuthConfig // of oauth
	mux    *http.ServeMux
	person auth.ResourceOwner
	users  *user.Service
}

// userRemoval removes the keys of removed users.
type userRemoval struct{ h *fixture }

func (o userRemoval) UserRemoved(ctx context.Context, tx db.Querier, r user.Removal) error {
	return o.h.RemoveUser(ctx, tx, r.OrgID, r.UserID)
}

func newServer(t *testing.T, d *db.DB, change ...func(*auth.OAuthConfig)) *server {
	t.Helper()
	h := newFixture(t, d)
	now := func() time.Time { return h.now }
	b := bus.New()
	s := &server{fixture: h, t: t, db: d, mux: http.NewServeMux()}
	s.users = usertest.New(d, h.orgs, &event.Outbox{DB: d, Bus: b, Clock: clock.Func(func() time.Time { return h.now })}, b, now)
	s.users.Observe(userRemoval{h})
	c := auth.OAuthConfig{BaseURL: base, Register: true, Callbacks: []string{"https://assistant.example.com/back"},
		Limiter: access.NewLimiter(now), Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&c)
	}
	s.config, s.oauth = c, auth.NewOAuth(h.Service, c)
	s.oauth.Mount(s.mux)
	s.person = s.addUser("ada@example.com", "admin")
	return s
}

func (s *server) addUser(email, role string) auth.ResourceOwner {
	s.t.Helper()
	u, err := s.users.Create(context.Background(), s.org.ID, user.Fresh{Email: email, FirstName: "Ada", Role: role})
	if err != nil {
		s.t.Fatal(err)
	}
	return auth.ResourceOwner{Org: s.org, UserID: u.ID, Role: role}
}

// request returns a valid authorization request, with changes "name", "value", …; "-" removes a parameter.
func request(changes ...string) url.Values {
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{"response_type": {"code"}, "client_id": {"soniq-assistant"}, "redirect_uri": {callback}, "state": {"xyz"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
		"scope": {"calls:read calls:write contacts:read"}, "resource": {base + "/mcp/sse"}}
	return withChanges(q, changes...)
}

func withChanges(q url.Values, changes ...string) url.Values {
	for i := 0; i+1 < len(changes); i += 2 {
		if q.Set(changes[i], changes[i+1]); changes[i+1] == "-" {
			q.Del(changes[i])
		}
	}
	return q
}

// agree lets the user consent to a request, and returns the code.
func (s *server) agree(q url.Values, scopes ...access.Scope) string {
	s.t.Helper()
	a, _, err := s.oauth.ParseAuthorizationRequest(context.Background(), q)
	if err != nil {
		s.t.Fatal(err)
	}
	if scopes == nil {
		scopes = a.Scopes
	}
	var to string
	err = s.db.TxContext(context.Background(), func(ctx context.Context, tx db.Querier) (err error) {
		to, err = s.oauth.IssueCode(ctx, tx, a, s.person, scopes)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	u, err := url.Parse(to)
	if err != nil || u.Query().Get("iss") != issuer || u.Query().Get("state") != q.Get("state") {
		s.t.Fatalf("led to %s, %v", to, err)
	}
	return u.Query().Get("code")
}

// reply is the response of an endpoint.
type reply struct {
	Status       int
	Header       http.Header
	Error        string `json:"error"`
	Access       string `json:"access_token"`
	Refresh      string `json:"refresh_token"`
	Scope        string
	ClientID     string   `json:"client_id"`
	RedirectURIs []string `json:"redirect_uris"`
	Active       bool
	Subject      string `json:"sub"`
	Text         string `json:"-"`
}

func (s *server) post(path string, form url.Values, header ...string) reply {
	r := httptest.NewRequest("POST", base+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return s.do(r)
}

func (s *server) do(r *http.Request) reply {
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, r.WithContext(op.WithClientAddress(r.Context(), here)))
	a := reply{Status: w.Code, Header: w.Header(), Text: w.Body.String()}
	_ = json.Unmarshal(w.Body.Bytes(), &a)
	return a
}

func (s *server) redeem(code string, changes ...string) reply {
	return s.post("/auth/oauth/token", withChanges(url.Values{"grant_type": {"authorization_code"}, "code": {code}, "client_id": {"soniq-assistant"},
		"redirect_uri": {callback}, "code_verifier": {verifier}, "resource": {base + "/mcp/sse"}}, changes...))
}

func (s *server) refresh(token string, changes ...string) reply {
	return s.post("/auth/oauth/token", withChanges(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}, "client_id": {"soniq-assistant"}}, changes...))
}

// tokens returns the tokens of a user who granted all requested scopes.
func (s *server) tokens(changes ...string) reply {
	s.t.Helper()
	q := request(changes...)
	a := s.redeem(s.agree(q), "client_id", q.Get("client_id"), "redirect_uri", q.Get("redirect_uri"), "resource", "-")
	if a.Status != 200 || a.Header.Get("Cache-Control") != "no-store" {
		s.t.Fatalf("%d %s", a.Status, a.Text)
	}
	return a
}

// errorAt returns the error code with which a token is refused at a resource; "" if it is accepted.
func (s *server) errorAt(token string, at auth.Audience) string {
	_, err := s.VerifyFor(context.Background(), token, at, access.Live, here)
	var known *op.Error
	if errors.As(err, &known) {
		return known.Code
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return ""
}

func (s *server) wantError(a reply, code, what string) {
	s.t.Helper()
	if a.Error != code || a.Status < 400 {
		s.t.Errorf("%s: %d %s, want %s", what, a.Status, a.Text, code)
	}
}

// eachDB runs a test on each database.
func eachDB(t *testing.T, run func(s *server), change ...func(*auth.OAuthConfig)) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) { run(newServer(t, d, change...)) })
}
