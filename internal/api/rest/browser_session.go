package rest

import (
	"context"
	"net/http"
	"net/netip"
	"slices"

	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
)

// The session cookie of the account page is a credential of the API, for pages of this server alone. Browsers send cookies
// also with requests that other pages cause. Three rules keep these out: the request has no Authorization; Sec-Fetch-Site
// says that a page of this very origin caused it; and anything but GET and HEAD has a header that pages of other origins
// cannot send without asking first (Fetch standard). CORS never allows credentials, and not this header.

// pageHeader is the header with the value 1 that pages of this server send with changes.
const pageHeader = "Soniq-Page"

// Sessions returns the signed-in user of a request that has a session cookie.
type Sessions interface {
	// SessionToken returns the session cookie of a request; "" if it has none.
	SessionToken(r *http.Request) string
	// VerifySession returns the principal of a session. Its errors are *op.Error if the session is at fault.
	VerifySession(ctx context.Context, token string, env access.Environment, source netip.Addr) (access.Principal, error)
}

// identify adds the principal of a request of the API to the context, or the reason why there is none.
func (s *Server) identify(ctx context.Context, r *http.Request, env access.Environment) context.Context {
	if len(r.Header.Values("Authorization")) > 0 {
		return s.authenticate(ctx, r, env, s.cfg.Keys)
	}
	token := s.cfg.Sessions.SessionToken(r)
	if token == "" {
		return ctx
	}
	if e := foreignPage(r); e != nil {
		s.countFailures(op.ClientAddress(ctx), 1)
		return op.WithRefusal(ctx, op.Challenged(ctx, e))
	}
	return s.accept(ctx, token, r, func(source netip.Addr) (access.Principal, error) {
		return s.cfg.Sessions.VerifySession(ctx, token, env, source)
	})
}

// foreignPage returns the reason why the session cookie of a request does not count; nil if a page of this server sent the request.
func foreignPage(r *http.Request) *op.Error {
	if !slices.Equal(r.Header.Values("Sec-Fetch-Site"), []string{"same-origin"}) {
		return op.Fail("unauthenticated", "a session counts only for pages of this server, which browsers mark by Sec-Fetch-Site: same-origin, "+
			"over HTTPS or at loopback; send Authorization: Bearer <API key> from elsewhere")
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && !slices.Equal(r.Header.Values(pageHeader), []string{"1"}) {
		return op.Fail("unauthenticated", "changes by a session need the header "+pageHeader+": 1")
	}
	return nil
}
