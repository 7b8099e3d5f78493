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

// OAuthConfig configures the authorization server.
type OAuthConfig struct {
	BaseURL   string   // URL of this server without a trailing slash
	Callbacks []string // redirect URIs of the fixed client besides loopback URIs
	Register  bool     // dynamic client registration (RFC 7591) is on
	// ReuseWindow is how long a spent refresh token may be used once more, in case the client lost the response. 0:
	// never.
	ReuseWindow time.Duration
	Fetch       *http.Client // for client metadata documents; it must reach public addresses only
	Limiter     *access.Limiter
	Log         *slog.Logger
}

// OAuth is the authorization server (OAuth 2.1, RFC 9700): codes with PKCE, rotating refresh tokens, opaque access tokens.
type OAuth struct {
	cfg       OAuthConfig
	keys      *Service
	documents documentCache
}

// NewOAuth returns an authorization server that stores its grants with the service of keys.
func NewOAuth(keys *Service, c OAuthConfig) *OAuth { return &OAuth{cfg: c, keys: keys} }

// Lifetimes of codes, tokens and grants.
const (
	codeLife    = time.Minute
	accessLife  = time.Hour
	refreshLife = 60 * 24 * time.Hour // since the last use
)

// Issuer returns the issuer identifier of the server (RFC 8414 §2).
func (o *OAuth) Issuer() string { return o.cfg.BaseURL + "/auth" }

// Paths of the endpoints.
const (
	AuthorizePath  = "/auth/oauth/authorize"
	tokenPath      = "/auth/oauth/token"
	revokePath     = "/auth/oauth/revoke"
	introspectPath = "/auth/oauth/introspect"
	registerPath   = "/auth/oauth/register"
)

// toolPaths are the paths of the tool server. Each is a resource identifier of its own (RFC 8707).
var toolPaths = []string{"/mcp", "/mcp/sse", "/mcp/mcp"}

// apiPaths are the paths of the API.
var apiPaths = []string{"", "/api/v1", "/v1"}

// audienceOf returns the audience of a resource identifier. ok is false for an unknown resource.
func (o *OAuth) audienceOf(resource string) (a Audience, ok bool) {
	u, err := url.Parse(resource)
	if err != nil || u.Fragment != "" || u.RawQuery != "" || u.User != nil {
		return "", false
	}
	base, err := url.Parse(o.cfg.BaseURL)
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

// Mount registers the endpoints for clients.
func (o *OAuth) Mount(mux *http.ServeMux) {
	o.mountMetadata(mux)
	o.mountDefaults(mux)
	handleCORS(mux, "POST", tokenPath, o.token)
	handleCORS(mux, "POST", revokePath, o.revoke)
	handleCORS(mux, "POST", introspectPath, o.introspect)
	if o.cfg.Register {
		handleCORS(mux, "POST", registerPath, o.register)
	}
}

// withCORS allows requests from pages of any origin, because the endpoints do not use cookies. It limits the size of
// the body.
func withCORS(methods string, h http.HandlerFunc) http.HandlerFunc {
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

func handleCORS(mux *http.ServeMux, method, path string, h http.HandlerFunc) {
	mux.HandleFunc(method+" "+path, withCORS(method+", OPTIONS", h))
	mux.HandleFunc("OPTIONS "+path, withCORS(method+", OPTIONS", h))
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
}

// stepUpTime is how long the refresh of a grant is refused after a request lacked a scope, so that the client asks
// the user again.
const stepUpTime = 10 * time.Second

// StepUp records that a request of a client lacked a scope. Some clients then refresh their token, which adds no
// scope. The next refresh is therefore refused without spending the token, and the client asks the user.
func (s *Service) StepUp(ctx context.Context, p access.Principal) error {
	if p.Kind != access.OAuthToken {
		return nil
	}
	return s.db.Tx(db.Detached(context.WithoutCancel(ctx)), func(tx db.Querier) error {
		return setStepUp(ctx, tx, p.OrgID, p.KeyID, db.At(s.now().Add(stepUpTime)))
	})
}

// accessToken returns an access token, or db.ErrNone. A mistyped token costs no database query.
func (s *Service) accessToken(ctx context.Context, token string) (storedToken, error) {
	if !isWellFormed(accessPrefix(s.brand), token) {
		return storedToken{}, db.ErrNone
	}
	t, err := tokenByDigest(ctx, s.db.Read(ctx), s.seal.Digest(token))
	if err == nil && t.kind != "access" {
		return t, db.ErrNone
	}
	return t, err
}
