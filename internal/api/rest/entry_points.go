package rest

import (
	"context"
	"net/http"

	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
)

// Entry points of other packages, such as the tool server: they are served beside the operations, authenticate in the
// same way and call the same operations.

// Handle registers a handler beside the operations, with a pattern of net/http. It must be called before the server
// serves.
func (s *Server) Handle(pattern string, h http.Handler) { s.router.Handle(pattern, h) }

// Admit authenticates a request like an operation. Attempts without a valid credential are counted. If the error is
// not nil, the context has no principal. Each entry point has its own verifier, because access tokens are issued for
// one entry point.
func (s *Server) Admit(w http.ResponseWriter, r *http.Request, env access.Environment, keys Verifier) (context.Context, *op.Error) {
	ctx := s.authenticate(op.WithClientAddress(r.Context(), s.clientAddress(r)), r, env, keys)
	if _, known := access.From(ctx); known {
		return ctx, nil
	}
	if e := s.cfg.Pipeline.Charge(ctx, w.Header(), op.Reads, false); e != nil {
		return ctx, e
	}
	return ctx, op.Refusal(ctx)
}

// Charge counts a request against the quotas of its credential.
func (s *Server) Charge(ctx context.Context, h http.Header, class op.Class, open bool) *op.Error {
	return s.cfg.Pipeline.Charge(ctx, h, class, open)
}

// Operations returns the operations that the server serves.
func (s *Server) Operations() []op.Operation { return s.cfg.Operations }

// Operate serves an operation, at its path below op.Prefix, as the principal that the context contains already.
func (s *Server) Operate(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	defer s.recoverPanic(ctx, w, r)
	if p, ok := access.From(ctx); ok {
		r = r.WithContext(withEnvironment(ctx, p.Environment))
	}
	s.route(w, r)
}
