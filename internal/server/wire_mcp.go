package server

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"soniq/internal/api/mcp"
	"soniq/internal/config"
	"soniq/internal/identity/auth"
	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
)

// toolKeys verifies the credentials of MCP clients: API keys, and access tokens with the audience of the tool server.
type toolKeys struct{ keys *auth.Service }

// Verify returns the principal of an access token.
func (k toolKeys) Verify(ctx context.Context, token string, e access.Environment, source netip.Addr) (access.Principal, error) {
	return k.keys.VerifyFor(ctx, token, auth.MCP, e, source)
}

// openTools serves the MCP tools beside the operations that they call.
func (s *Server) openTools() {
	p := s.Platform
	s.tools = mcp.New(mcp.Config{Operations: s.rest.Operations, Document: s.rest.Document, Operate: s.rest.Operate,
		Admit: func(w http.ResponseWriter, r *http.Request, e access.Environment) (context.Context, *op.Error) {
			return s.rest.Admit(w, r, e, toolKeys{p.keys})
		},
		Challenge: p.oauth.Challenge, ScopeChallenge: p.oauth.ScopeChallenge, StepUp: p.keys.StepUp,
		Charge: s.rest.Pipeline.Charge, DB: p.db, Log: p.log, Now: time.Now, Key: p.seal.Key("questions of tools"), BaseURL: p.config.BaseURL,
		Origins: config.SplitList(p.config.CORSOrigins), Version: op.Version, Extend: extendTools()})
	for _, path := range mcp.Paths {
		s.rest.Handle(path, s.tools)
	}
}
