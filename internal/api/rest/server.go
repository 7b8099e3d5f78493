// Package rest is the HTTP entry point of the API. It authenticates requests, maps path prefixes, and serves the
// operations, their OpenAPI document and their documentation.
package rest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	pathpkg "path"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/wiring"
)

// Verifier returns the principal of a bearer token. Its errors are *op.Error if the credential is at fault.
type Verifier interface {
	Verify(ctx context.Context, token string, env access.Environment, source netip.Addr) (access.Principal, error)
}

// Config holds the dependencies of a Server.
type Config struct {
	Pipeline   *op.Pipeline
	Operations []op.Operation
	Keys       Verifier
	Sessions   Sessions
	Delegation Delegation
	Proxies    []netip.Prefix // trusted proxies, for X-Forwarded-For
	Readiness  Readiness
	Metrics    http.Handler
	MetricsKey string      // "": for direct requests from this machine only
	Secure     bool        // the public address begins with https: browsers are told to use nothing else (RFC 6797)
	Provision  Provisioner // nil: no provisioning
	Notices    Notices     // nil: no notices
	// Metadata is the address of the protected resource metadata for OAuth clients (RFC 9728); "": none.
	Metadata     string
	EntryPoints  []EntryPoint
	SIPWebSocket http.Handler // SIP over WebSocket at /ws/sip; nil: none
	Origins      []string     // origins (https://host) of pages that may use the API; "*": all
	Console      string       // address of the web console, to which the home page leads browsers; "": none
	Log          *slog.Logger
	Webhooks     Describer
}

// Delegation lets a credential act in another organisation, given by the header On-Behalf-Of.
type Delegation interface {
	ActOnBehalf(ctx context.Context, p access.Principal, org string) (access.Principal, error)
}

// Readiness reports the state of the node.
type Readiness interface {
	// Ready returns nil if the node can take calls.
	Ready(ctx context.Context) error
	// Notice returns what the operator has to know although the process runs, or "".
	Notice() string
}

// Provisioner serves the configuration of phones. private reports whether the answer cannot be read in transit.
type Provisioner interface {
	Serve(w http.ResponseWriter, r *http.Request, private bool)
}

// Notices accepts a change notice of a connected system. It returns false if the secret in the address is wrong.
type Notices interface {
	Notice(ctx context.Context, org, id, secret string) (bool, error)
}

// EntryPoint registers handlers beside the operations.
type EntryPoint interface {
	Mount(*http.ServeMux)
}

// Describer adds to the OpenAPI document.
type Describer interface {
	Describe(*huma.OpenAPI)
}

// Server serves the HTTP API. It is safe for concurrent use.
type Server struct {
	cfg    Config
	api    huma.API
	router *http.ServeMux
	// Both are built at the first request for them, which most servers never get.
	document, collection func() ([]byte, error)
}

// New returns a server with the operations registered.
func New(c Config) (*Server, error) {
	wiring.Check(c, "Provision", "Notices", "SIPWebSocket")
	s := &Server{cfg: c, router: http.NewServeMux()}
	s.api = op.NewAPI(s.router, c.Pipeline, c.Operations, c.Webhooks.Describe)
	s.document = sync.OnceValues(func() ([]byte, error) { return op.JSON(s.api) })
	s.collection = sync.OnceValues(func() ([]byte, error) { return json.MarshalIndent(s.buildCollection(), "", " ") })
	s.pages()
	return s, nil
}

// Document returns the OpenAPI 3.1 document.
func (s *Server) Document() ([]byte, error) { return s.document() }

// pages registers the handlers beside the operations.
func (s *Server) pages() {
	s.router.HandleFunc("GET /openapi.json", s.openapi)
	s.router.HandleFunc("GET /postman.json", s.postman)
	s.router.HandleFunc("GET /health", s.health)
	s.router.HandleFunc("GET /ready", s.ready)
	s.router.HandleFunc("GET /metrics", s.metrics)
	s.router.HandleFunc("GET /errors", errorsPage)
	s.router.HandleFunc("GET /errors/{code}", errorPage)
	s.router.HandleFunc("GET /{$}", s.homePage)
	s.router.HandleFunc("GET "+op.Prefix+"/{$}", s.index)
	s.router.HandleFunc("GET "+op.Prefix, s.index)
	if s.cfg.Provision != nil {
		s.router.HandleFunc("GET /provision/{token}/{$}", s.provision)
		s.router.HandleFunc("GET /provision/{token}/{file}", s.provision)
	}
	if s.cfg.Notices != nil {
		s.router.HandleFunc("POST "+noticePrefix+"{org}/{id}/{secret}", s.notice)
	}
	if s.cfg.SIPWebSocket != nil {
		s.router.Handle("GET /ws/sip", s.cfg.SIPWebSocket)
	}
	s.llmsPages()
	s.docs()
	for _, e := range s.cfg.EntryPoints {
		e.Mount(s.router)
	}
}

// HTTP returns a server for the handler with limits on slow clients.
func (s *Server) HTTP() *http.Server {
	return &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 60 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug)}
}

// requestIDPattern matches the ids that a client may choose for its request.
var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,128}$`)

// ServeHTTP assigns a request id, determines the environment and the principal, and routes the request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("X-Request-Id")
	if !requestIDPattern.MatchString(id) {
		id = db.NewID("req")
	}
	h := w.Header()
	h.Set("X-Request-Id", id)
	s.setSecurityHeaders(h)
	ctx := op.WithTarget(op.WithRequestID(r.Context(), id), loggableTarget(r))
	defer s.recoverPanic(ctx, w, r)
	path, env, api := environment(r.URL.Path)
	if !api {
		if r.URL.Path == "/openapi.json" && s.cors(w, r) {
			return
		}
		s.route(w, r.WithContext(op.WithClientAddress(ctx, s.clientAddress(r))))
		return
	}
	if trimmed := strings.TrimRight(path, "/"); trimmed != path {
		to := url.URL{Path: strings.TrimRight(r.URL.Path, "/"), RawQuery: r.URL.RawQuery}
		http.Redirect(w, r, to.String(), http.StatusPermanentRedirect)
		return
	}
	h.Set("Cache-Control", "no-store")
	if path != pathpkg.Clean(path) { // the router would redirect, and to the other environment
		op.Write(w, r.WithContext(ctx), op.Fail("not_found", "there is nothing at this address; GET /v1 lists what there is"))
		return
	}
	s.serveAPI(ctx, w, r, path, env)
}

// serveAPI serves a request below the API prefixes, at its path below op.Prefix.
func (s *Server) serveAPI(ctx context.Context, w http.ResponseWriter, r *http.Request, path string, env access.Environment) {
	u := *r.URL
	u.Path, u.RawPath = path, ""
	r = r.WithContext(ctx)
	r.URL = &u
	if s.cors(w, r) {
		return
	}
	ctx = s.identify(op.WithMetadata(op.WithClientAddress(ctx, s.clientAddress(r)), s.cfg.Metadata), r, env)
	r = r.WithContext(withEnvironment(ctx, env))
	r.Body = http.MaxBytesReader(w, r.Body, 21<<20)
	s.route(w, r)
}

// recoverPanic answers a request that panicked with an internal error. The standard library would close the
// connection.
func (s *Server) recoverPanic(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler {
		panic(cause)
	}
	s.cfg.Log.Error("request panicked", "request", op.RequestID(ctx), "target", op.Target(ctx), "err", cause, "stack",
		string(debug.Stack()))
	op.Write(w, r.WithContext(ctx), op.Fail("internal", ""))
}

// environment maps /v1/… and /sandbox/v1/… to /api/v1/…, the prefix under which operations are registered.
func environment(path string) (mapped string, env access.Environment, api bool) {
	for _, p := range []struct {
		prefix string
		env    access.Environment
	}{{"/sandbox/v1", access.Sandbox}, {"/v1", access.Live}, {op.Prefix, access.Live}} {
		if rest, ok := strings.CutPrefix(path, p.prefix); ok && (rest == "" || rest[0] == '/') {
			return op.Prefix + rest, p.env, true
		}
	}
	return path, access.Live, false
}

type environmentKey struct{}

func withEnvironment(ctx context.Context, env access.Environment) context.Context {
	return context.WithValue(ctx, environmentKey{}, env)
}

// authenticate adds the principal of a bearer token to the context, or the reason why there is none. Public operations
// ignore the reason.
func (s *Server) authenticate(ctx context.Context, r *http.Request, env access.Environment, keys Verifier) context.Context {
	token, ok := access.Bearer(r)
	if !ok {
		return ctx
	}
	return s.accept(ctx, token, r, func(source netip.Addr) (access.Principal, error) { return keys.Verify(ctx, token, env, source) })
}

// accept adds the principal that verify returns for a token to the context, or the reason why there is none.
func (s *Server) accept(ctx context.Context, token string, r *http.Request, verify func(source netip.Addr) (access.Principal,
	error)) context.Context {
	source := op.ClientAddress(ctx)
	if e := s.throttled(token, source); e != nil {
		return op.WithRefusal(ctx, e)
	}
	p, err := verify(source)
	if err == nil {
		s.recordValid(token)
		p.Source = source
		p, err = s.actOnBehalf(ctx, p, r.Header.Values("On-Behalf-Of"))
	}
	if err == nil {
		return access.With(ctx, p)
	}
	var e *op.Error
	if !errors.As(err, &e) {
		if ctx.Err() == nil { // else the client has disconnected
			s.cfg.Log.Error("credential not checked", "request", op.RequestID(ctx), "err", err)
		}
		e = op.Unexpected(err)
	}
	s.recordFailure(source, e, r.Header.Get("Authorization") != "")
	if e.Status() == http.StatusUnauthorized {
		e = op.Challenged(ctx, e)
	}
	return withRefusal(ctx, e, p)
}

// actOnBehalf returns the principal for the organisation that the request names.
func (s *Server) actOnBehalf(ctx context.Context, p access.Principal, named []string) (access.Principal, error) {
	switch {
	case len(named) == 0:
		return p, nil
	case len(named) > 1:
		return p, op.NotFound("organisation")
	}
	return s.cfg.Delegation.ActOnBehalf(ctx, p, strings.TrimSpace(named[0]))
}

// route routes a request. It answers unknown paths and methods with problems (RFC 9457).
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	if _, pattern := s.router.Handler(r); pattern != "" {
		s.router.ServeHTTP(w, r)
		return
	}
	if strings.HasPrefix(r.URL.Path, op.Prefix) {
		class := op.Reads
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			class = op.Writes
		}
		if e := s.cfg.Pipeline.Charge(r.Context(), w.Header(), class, true); e != nil {
			op.Write(w, r, e)
			return
		}
	}
	if allowed := s.methods(r); len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		op.Write(w, r, op.Fail("method_not_allowed", "allowed here: "+strings.Join(allowed, ", ")))
		return
	}
	op.Write(w, r, op.Fail("not_found", "there is nothing at this address; GET /v1 lists what there is"))
}

func (s *Server) methods(r *http.Request) []string {
	var allowed []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		try := r.Clone(r.Context())
		try.Method = m
		if _, pattern := s.router.Handler(try); pattern != "" {
			allowed = append(allowed, m)
		}
	}
	return allowed
}
