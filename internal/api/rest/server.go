// Package rest is the HTTP door: it authenticates, rewrites prefixes, and serves the operations, their description
// and their documentation.
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
)

// A Verifier says who a bearer token belongs to. Its errors are *op.Error where the caller is to blame.
type Verifier interface {
	Verify(ctx context.Context, token string, env access.Environment, source netip.Addr) (access.Principal, error)
}

// Config is what a Server is made of.
type Config struct {
	Corridor   *op.Pipeline
	Operations []op.Operation
	Keys       Verifier
	// Represent lets a credential act in another organisation, that of On-Behalf-Of; nil: none may.
	Represent  func(ctx context.Context, p access.Principal, org string) (access.Principal, error)
	Proxies    []netip.Prefix                  // whose X-Forwarded-For is believed
	Ready      func(ctx context.Context) error // nil when the node can take calls
	Metrics    http.Handler
	MetricsKey string // "" : loopback only
	// Provision hands phones their configuration; private says that nobody on the way can read the answer. nil: none is handed out.
	Provision func(w http.ResponseWriter, r *http.Request, private bool)
	// Notice is told that something changed in a connected system, by an address that is a secret; false where it is not. nil: nobody is.
	Notice func(ctx context.Context, org, id, secret string) (bool, error)
	// Metadata is the address at which the API is described to OAuth clients (RFC 9728); "": nowhere.
	Metadata string
	Doors    []func(*http.ServeMux) // further doors: each registers what it serves
	Phones   http.Handler           // SIP over WebSocket at /ws/sip; nil: none
	Origins  []string               // pages (https://host) whose browsers may use the API; "*": all
	Log      *slog.Logger
	Describe func(*huma.OpenAPI) // adds to the description; may be nil
}

// A Server answers HTTP.
type Server struct {
	Config
	api    huma.API
	router *http.ServeMux
	// Both are made when they are first asked for, which most servers never are.
	document, collection func() ([]byte, error)
}

// New registers the operations.
func New(c Config) (*Server, error) {
	s := &Server{Config: c, router: http.NewServeMux()}
	var more []func(*huma.OpenAPI)
	if c.Describe != nil {
		more = append(more, c.Describe)
	}
	s.api = op.NewAPI(s.router, c.Corridor, c.Operations, more...)
	s.document = sync.OnceValues(func() ([]byte, error) { return op.JSON(s.api) })
	s.collection = sync.OnceValues(func() ([]byte, error) { return json.MarshalIndent(s.collect(), "", " ") })
	s.pages()
	return s, nil
}

// Document is the OpenAPI 3.1 description.
func (s *Server) Document() ([]byte, error) { return s.document() }

// pages are what is served beside the operations.
func (s *Server) pages() {
	s.router.HandleFunc("GET /openapi.json", s.openapi)
	s.router.HandleFunc("GET /postman.json", s.postman)
	s.router.HandleFunc("GET /health", s.health)
	s.router.HandleFunc("GET /ready", s.ready)
	s.router.HandleFunc("GET /metrics", s.metrics)
	s.router.HandleFunc("GET /errors", errorsPage)
	s.router.HandleFunc("GET /errors/{code}", errorPage)
	s.router.HandleFunc("GET /{$}", home)
	s.router.HandleFunc("GET "+op.Prefix+"/{$}", s.index)
	s.router.HandleFunc("GET "+op.Prefix, s.index)
	if s.Provision != nil {
		s.router.HandleFunc("GET /provision/{token}/{$}", s.provision)
		s.router.HandleFunc("GET /provision/{token}/{file}", s.provision)
	}
	if s.Notice != nil {
		s.router.HandleFunc("POST "+noticeFolder+"{org}/{id}/{secret}", s.notice)
	}
	if s.Phones != nil {
		s.router.Handle("GET /ws/sip", s.Phones)
	}
	s.llmsPages()
	s.docs()
	for _, open := range s.Doors {
		open(s.router)
	}
}

// HTTP returns a server for the handler with limits on slow clients.
func (s *Server) HTTP() *http.Server {
	return &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 60 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug)}
}

// goodID is what a client may choose as the id of its request.
var goodID = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,128}$`)

// ServeHTTP gives the request an id, finds its environment and its principal, and routes it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("X-Request-Id")
	if !goodID.MatchString(id) {
		id = db.NewID("req")
	}
	h := w.Header()
	h.Set("X-Request-Id", id)
	h.Set("X-Content-Type-Options", "nosniff")
	ctx := op.WithTarget(op.WithRequestID(r.Context(), id), target(r))
	defer s.survive(ctx, w, r)
	path, env, api := environment(r.URL.Path)
	if !api {
		if r.URL.Path == "/openapi.json" && s.cors(w, r) {
			return
		}
		s.route(w, r.WithContext(op.WithClientAddress(ctx, s.source(r))))
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

// serveAPI serves what is below the prefixes, at its path below the first of them.
func (s *Server) serveAPI(ctx context.Context, w http.ResponseWriter, r *http.Request, path string, env access.Environment) {
	u := *r.URL
	u.Path, u.RawPath = path, ""
	r = r.WithContext(ctx)
	r.URL = &u
	if s.cors(w, r) {
		return
	}
	ctx = s.authenticate(op.WithMetadata(op.WithClientAddress(ctx, s.source(r)), s.Metadata), r, env, s.Keys)
	r = r.WithContext(withEnvironment(ctx, env))
	r.Body = http.MaxBytesReader(w, r.Body, 21<<20)
	s.route(w, r)
}

// survive answers a request that made us panic, and goes on with others; the standard library would cut the connection.
func (s *Server) survive(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler {
		panic(cause)
	}
	s.Log.Error("request panicked", "request", op.RequestID(ctx), "target", op.Target(ctx), "err", cause, "stack", string(debug.Stack()))
	op.Write(w, r.WithContext(ctx), op.Fail("internal", ""))
}

// environment maps /v1/… and /sandbox/v1/… to /api/v1/…, where operations are registered.
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

// authenticate puts the principal into the context, or why there is none: operations that are public do not mind.
func (s *Server) authenticate(ctx context.Context, r *http.Request, env access.Environment, keys Verifier) context.Context {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ctx
	}
	token, source := strings.TrimSpace(token), op.ClientAddress(ctx)
	if e := s.held(token, source); e != nil {
		return op.WithRefusal(ctx, e)
	}
	p, err := keys.Verify(ctx, token, env, source)
	if err == nil {
		s.passed(token)
		p.Source = source
		p, err = s.onBehalf(ctx, p, r.Header.Values("On-Behalf-Of"))
	}
	if err == nil {
		return access.With(ctx, p)
	}
	var e *op.Error
	if !errors.As(err, &e) {
		s.Log.Error("credential not checked", "request", op.RequestID(ctx), "err", err)
		e = op.Unexpected(err)
	}
	s.struck(source, e)
	if e.Status() == http.StatusUnauthorized {
		e = op.Challenged(ctx, e)
	}
	return refused(ctx, e, p)
}

// onBehalf is the principal that acts in the organisation which the request names.
func (s *Server) onBehalf(ctx context.Context, p access.Principal, named []string) (access.Principal, error) {
	switch {
	case len(named) == 0:
		return p, nil
	case len(named) > 1 || s.Represent == nil:
		return p, op.NotFound("organisation")
	}
	return s.Represent(ctx, p, strings.TrimSpace(named[0]))
}

// route answers unknown paths and methods with problems too.
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
		if e := s.Corridor.Charge(r.Context(), w.Header(), class, true); e != nil {
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
