package auth

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

// OAuthConfig is what the authorization server is made of.
type OAuthConfig struct {
	BaseURL   string   // address of this server, without a slash at its end
	Callbacks []string // redirect addresses of the fixed client beside those on the person's own machine
	Register  bool     // clients may register themselves (RFC 7591)
	// ReuseWindow is how long a spent refresh token is good once more for who lost the answer; 0: not at all.
	ReuseWindow time.Duration
	Fetch       *http.Client // for the documents of clients that are addresses; it must reach public addresses only
	Limiter     *access.Limiter
	Log         *slog.Logger
}

// OAuth is the authorization server (OAuth 2.1, RFC 9700): codes with PKCE, rotating refresh tokens, opaque access tokens.
type OAuth struct {
	OAuthConfig
	keys *Service
	docs documents
}

// NewOAuth makes the server; what people granted is kept by the room of keys.
func NewOAuth(keys *Service, c OAuthConfig) *OAuth { return &OAuth{OAuthConfig: c, keys: keys} }

// Lifetimes of codes, tokens and grants.
const (
	codeLife    = time.Minute
	accessLife  = time.Hour
	refreshLife = 60 * 24 * time.Hour // since its last use
)

// Issuer identifies the server (RFC 8414 §2).
func (o *OAuth) Issuer() string { return o.BaseURL + "/auth" }

// Paths of the endpoints.
const (
	AuthorizePath  = "/auth/oauth/authorize"
	tokenPath      = "/auth/oauth/token"
	revokePath     = "/auth/oauth/revoke"
	introspectPath = "/auth/oauth/introspect"
	registerPath   = "/auth/oauth/register"
)

// toolPaths are the addresses of the tool server; each of them is a resource identifier of its own (RFC 8707).
var toolPaths = []string{"/mcp", "/mcp/sse", "/mcp/mcp"}

// apiPaths are the addresses of the API.
var apiPaths = []string{"", "/api/v1", "/v1"}

// audienceOf is the resource that an address names; ok is false for an address that is none of ours.
func (o *OAuth) audienceOf(resource string) (a Audience, ok bool) {
	u, err := url.Parse(resource)
	if err != nil || u.Fragment != "" || u.RawQuery != "" || u.User != nil {
		return "", false
	}
	base, err := url.Parse(o.BaseURL)
	if err != nil || !strings.EqualFold(u.Scheme, base.Scheme) || !strings.EqualFold(u.Host, base.Host) {
		return "", false
	}
	path, within := strings.CutPrefix(strings.TrimRight(u.Path, "/"), strings.TrimRight(base.Path, "/"))
	for _, p := range toolPaths {
		if within && path == p {
			return MCP, true
		}
	}
	for _, p := range apiPaths {
		if within && path == p {
			return REST, true
		}
	}
	return "", false
}

// Mount registers the endpoints that programs use.
func (o *OAuth) Mount(mux *http.ServeMux) {
	o.mountMetadata(mux)
	handle(mux, "POST", tokenPath, o.token)
	handle(mux, "POST", revokePath, o.revoke)
	handle(mux, "POST", introspectPath, o.introspect)
	if o.Register {
		handle(mux, "POST", registerPath, o.register)
	}
}

// open lets pages of any origin use an endpoint that works without cookies, and bounds what is sent to it.
func open(methods string, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		if r.Method == http.MethodOptions {
			w.Header().Set("Access-Control-Allow-Methods", methods)
			w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type, MCP-Protocol-Version")
			w.Header().Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		h(w, r)
	}
}

func handle(mux *http.ServeMux, method, path string, h http.HandlerFunc) {
	mux.HandleFunc(method+" "+path, open(method+", OPTIONS", h))
	mux.HandleFunc("OPTIONS "+path, open(method+", OPTIONS", h))
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
}

// stepUpTime is for how long a grant that lacked a scope is not refreshed, so that its program asks the person again.
const stepUpTime = 10 * time.Second

// StepUp notes that a program was refused for want of a scope. Some programs then refresh their token, which brings them nothing:
// the next refresh is refused without the token being spent, and they ask the person.
func (s *Service) StepUp(ctx context.Context, p access.Principal) error {
	if p.Kind != access.OAuthToken {
		return nil
	}
	return s.db.Tx(db.Detached(context.WithoutCancel(ctx)), func(tx db.Querier) error {
		return setStepUp(ctx, tx, p.OrgID, p.KeyID, db.At(s.now().Add(stepUpTime)))
	})
}

// accessToken finds an access token, or db.ErrNone. A mistyped one costs no look into the database.
func (s *Service) accessToken(ctx context.Context, token string) (secret, error) {
	if !formed(accessPrefix(s.brand), token) {
		return secret{}, db.ErrNone
	}
	t, err := secretBy(ctx, s.db.Read(ctx), s.seal.Digest(token))
	if err == nil && t.kind != "access" {
		return t, db.ErrNone
	}
	return t, err
}
