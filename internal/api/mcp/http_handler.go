package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
	"soniq/internal/platform/strictjson"
)

// statelessRevision is the first protocol revision without sessions.
const statelessRevision = "2026-07-28"

// ServeHTTP serves all protocol revisions at one path. It checks the origin, authenticates, checks scopes and quotas,
// then routes by revision.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if !s.checkOrigin(w, r) {
		return
	}
	if !slices.Contains([]string{http.MethodGet, http.MethodPost, http.MethodDelete}, r.Method) {
		w.Header().Set("Allow", "GET, POST, DELETE, OPTIONS")
		w.WriteHeader(map[bool]int{true: http.StatusNoContent, false: http.StatusMethodNotAllowed}[r.Method == http.MethodOptions])
		return
	}
	v, ctx, e := s.authenticate(w, r)
	if e != nil {
		op.Write(w, r, s.withChallenge(r, e))
		return
	}
	if err := s.ready(); err != nil {
		s.cfg.Log.Error("tool server not built", "err", err)
		op.Write(w, r, op.Fail("internal", ""))
		return
	}
	r = r.WithContext(ctx)
	if e := s.authorize(w, r, v); e != nil {
		op.Write(w, r, e)
		return
	}
	s.route(w, r, v)
}

// authenticate returns the sender of a request. A test key selects the sandbox, a live key the live organisation.
func (s *Server) authenticate(w http.ResponseWriter, r *http.Request) (*sender, context.Context, *op.Error) {
	env := access.Live
	if token, ok := access.Bearer(r); ok && strings.Contains(token, "_test_") {
		env = access.Sandbox
	}
	ctx, e := s.cfg.API.Admit(w, r, env)
	if e != nil {
		return nil, ctx, e
	}
	p, _ := access.From(ctx)
	v := &sender{principal: p, source: op.ClientAddress(ctx), request: op.RequestID(ctx)}
	return v, context.WithValue(ctx, senderKey{}, v), nil
}

// route passes a request to the handler of its revision; the first matching case counts. Streams end when the server
// closes. The read deadline is removed, because streams outlive it.
func (s *Server) route(w http.ResponseWriter, r *http.Request, v *sender) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	r = r.WithContext(ctx)
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	b := &keepaliveWriter{ResponseWriter: w, interval: keepaliveInterval}
	defer b.stop()
	w = b
	switch id := r.URL.Query().Get("sessionid"); {
	case r.URL.Query().Has("sessionid"):
		s.streams.post(w, r, id, v)
	case r.Header.Get("Mcp-Protocol-Version") >= statelessRevision:
		if r.Method == http.MethodPost && s.serveFast(w, r, v) {
			return
		}
		serveChecked(w, r, v, s.stateless)
	case r.Method == http.MethodGet && r.Header.Get("Mcp-Session-Id") == "":
		s.streams.open(w, r, s.server, v)
	default:
		serveChecked(w, r, v, s.stateful)
	}
}

// serveChecked lets the SDK answer a request, and answers what it refuses without a JSON-RPC error.
func serveChecked(w http.ResponseWriter, r *http.Request, v *sender, next http.Handler) {
	if r.Method != http.MethodPost {
		next.ServeHTTP(w, r)
		return
	}
	all, batch := rpcRequests(v.body)
	check := rpcRequest.fault
	if lacksSession(r) {
		check = rpcRequest.uninitialized
	}
	if faults := faultsOf(all, check); len(faults) > 0 {
		writeFaults(w, r, faults, batch)
		return
	}
	held := &refusalWriter{ResponseWriter: w}
	next.ServeHTTP(held, r)
	held.finish(all, func(faults []rpcFault) { writeFaults(w, r, faults, batch) })
}

// lacksSession reports whether a request of a revision with sessions names none.
func lacksSession(r *http.Request) bool {
	return r.Header.Get("Mcp-Protocol-Version") < statelessRevision && r.Header.Get("Mcp-Session-Id") == ""
}

// checkOrigin refuses requests from pages of foreign origins, and sets the CORS headers for allowed ones.
func (s *Server) checkOrigin(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	w.Header().Add("Vary", "Origin")
	if !s.originAllowed(origin) {
		op.Write(w, r, &op.Error{Code: "insufficient_scope", Detail: "pages of " + origin + " may not use this server; see --cors-origins"})
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, traceparent")
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate, Retry-After, RateLimit, RateLimit-Policy, X-Request-Id")
	return true
}

func (s *Server) originAllowed(origin string) bool {
	if slices.ContainsFunc(s.cfg.Origins,
		func(o string) bool { return o == "*" || strings.EqualFold(strings.TrimSuffix(o, "/"), origin) }) {
		return true
	}
	base, err := url.Parse(s.cfg.BaseURL)
	from, wrong := url.Parse(origin)
	if err != nil || wrong != nil {
		return false
	}
	return strings.EqualFold(base.Scheme+"://"+base.Host, origin) || isLoopback(base.Hostname()) && isLoopback(from.Hostname())
}

// isLoopback reports whether a host is this machine. A server at a loopback address may be used by pages at any
// loopback address, such as development tools.
func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && a.IsLoopback()
}

// withChallenge adds the WWW-Authenticate header that describes how to get a credential (RFC 6750 §3, RFC 9728
// §5.1).
func (s *Server) withChallenge(r *http.Request, e *op.Error) *op.Error {
	if e.Status() != http.StatusUnauthorized {
		return e
	}
	c := *e
	c.Header = http.Header{"Www-Authenticate": {s.cfg.OAuth.Challenge(r.URL.Path, r.Header.Get("Authorization") != "")}}
	return &c
}

// rpcMessage holds the members of a posted message that are needed before it is parsed in full.
type rpcMessage struct {
	Version any    `json:"jsonrpc"`
	ID      any    `json:"id"`
	Method  string `json:"method"`
	Params  struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      json.RawMessage `json:"_meta"`
	} `json:"params"`
}

// maxBatch bounds the messages of one post.
const maxBatch = 20

// authorize counts a request against the quotas and refuses tools for which its sender has no scope. With the
// transport of 2024-11-05 the tool's result reports the missing scope instead, because its HTTP response carries no
// answer.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request, v *sender) *op.Error {
	if r.Method != http.MethodPost {
		return s.cfg.API.Charge(r.Context(), w.Header(), op.Reads, false)
	}
	if e := op.CheckEncoding(r.Header); e != nil {
		return e
	}
	all, body, e := peekMessages(r)
	if e != nil {
		return e
	}
	v.body = body
	old := r.URL.Query().Has("sessionid")
	for _, m := range all {
		if m.Method != "tools/call" {
			if e := s.cfg.API.Charge(r.Context(), w.Header(), op.Reads, false); e != nil {
				return e
			}
			continue
		}
		if t := s.tools[m.Params.Name]; t != nil && !old && !hasScope(v.principal, t.scope) {
			s.auditDenied(r.Context(), v, t)
			if err := s.cfg.OAuth.StepUp(r.Context(), v.principal); err != nil {
				s.cfg.Log.Error("step-up not prepared", "request", v.request, "err", err)
			}
			return s.missingScope(r.URL.Path, v.principal, t.scope)
		}
	}
	return nil
}

// peekMessages reads the messages of a post and restores the body. Malformed messages are left to the handlers.
func peekMessages(r *http.Request) (all []rpcMessage, body []byte, e *op.Error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, nil, op.Fail("payload_too_large", "a message may have 4 MB")
	}
	if err != nil {
		return nil, nil, op.Fail("malformed_json", "the body could not be read")
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if faults := ambiguous(body); len(faults) > 0 {
		wrong := op.Violations(faults)
		return nil, nil, &op.Error{Code: "malformed_json", Detail: wrong[0].Field + ": " + wrong[0].Message, Fields: wrong}
	}
	var one rpcMessage
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '[' {
		if json.Unmarshal(trimmed, &all) == nil && len(all) > maxBatch {
			return nil, nil, op.Fail("payload_too_large", "a batch may have 20 messages")
		}
		return all, body, nil
	}
	_ = json.Unmarshal(body, &one)
	return []rpcMessage{one}, body, nil
}

// ambiguous returns the members of a message that its handlers can read in different ways. Faults in the arguments of a
// tool are left to the tool, which reports them in its result.
func ambiguous(body []byte) []strictjson.Fault {
	var of any = &rpcMessage{}
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '[' {
		of = &[]rpcMessage{}
	}
	outside := slices.DeleteFunc(strictjson.Check(body), func(f strictjson.Fault) bool {
		return strings.Contains("."+f.Field, ".params.arguments.")
	})
	return append(outside, strictjson.Variants(body, of)...)
}

func hasScope(p access.Principal, scope access.Scope) bool { return slices.Contains(p.Scopes, scope) }

// missingScope returns the error for a missing scope. Its challenge also lists the granted scopes, so that a client
// that requests exactly these gets all it needs (step-up).
func (s *Server) missingScope(path string, p access.Principal, scope access.Scope) *op.Error {
	needed := []access.Scope{scope}
	return &op.Error{Code: "insufficient_scope", Detail: "this tool needs " + string(scope),
		Extra:  map[string]any{"required_scopes": needed},
		Header: http.Header{"Www-Authenticate": {s.cfg.OAuth.ScopeChallenge(path, p.Scopes, needed)}}}
}
