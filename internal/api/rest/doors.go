package rest

import (
	"context"
	"net/http"

	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
)

// This file is for other doors of this process, such as the tool server: they are served beside the operations, know their callers in
// the same way, and use the same operations.

// Handle serves a handler beside the operations, for a pattern of net/http. It is called before the server serves.
func (s *Server) Handle(pattern string, h http.Handler) { s.router.Handle(pattern, h) }

// Admit says who a request is from, as for the operations; attempts without a valid credential are counted. Where the error is not
// nil it says why nobody is known. The door has its own verifier, for access tokens are made for one door.
func (s *Server) Admit(w http.ResponseWriter, r *http.Request, env access.Environment, keys Verifier) (context.Context, *op.Error) {
	ctx := s.authenticate(op.WithClientAddress(r.Context(), s.source(r)), r, env, keys)
	if _, known := access.From(ctx); known {
		return ctx, nil
	}
	if e := s.Corridor.Charge(ctx, w.Header(), op.Reads, false); e != nil {
		return ctx, e
	}
	return ctx, op.Refusal(ctx)
}

// Operate serves an operation to a caller whom the context knows already, at its path below op.Prefix.
func (s *Server) Operate(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	defer s.survive(ctx, w, r)
	if p, ok := access.From(ctx); ok {
		r = r.WithContext(withEnvironment(ctx, p.Environment))
	}
	s.route(w, r)
}
