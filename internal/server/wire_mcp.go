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

// toolKeys verifies what is shown to the tool server: keys, and access tokens that were made for it.
type toolKeys struct{ keys *auth.Service }

// Verify returns the principal of an access token.
func (k toolKeys) Verify(ctx context.Context, token string, e access.Environment, source netip.Addr) (access.Principal, error) {
	return k.keys.VerifyFor(ctx, token, auth.MCP, e, source)
}

// openTools serves the tools for assistants beside the operations they are views of.
func (s *Server) openTools() {
	p := s.Platform
	s.tools = mcp.New(mcp.Config{Operations: s.rest.Operations, Document: s.rest.Document, Operate: s.rest.Operate,
		Admit: func(w http.ResponseWriter, r *http.Request, e access.Environment) (context.Context, *op.Error) {
			return s.rest.Admit(w, r, e, toolKeys{p.keys})
		},
		Challenge: p.oauth.Challenge, Lacking: p.oauth.ScopeChallenge, StepUp: p.keys.StepUp,
		Charge: s.rest.Corridor.Charge, DB: p.db, Log: p.log, Now: time.Now, Key: p.seal.Key("questions of tools"), BaseURL: p.config.BaseURL,
		Origins: config.SplitList(p.config.CORSOrigins), Version: op.Version, Extend: extendTools()})
	for _, path := range mcp.Paths {
		s.rest.Handle(path, s.tools)
	}
}
