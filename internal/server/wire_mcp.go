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
func (n *Server) openTools() {
	h := n.Platform
	n.tools = mcp.New(mcp.Config{Operations: n.rest.Operations, Document: n.rest.Document, Operate: n.rest.Operate,
		Admit: func(w http.ResponseWriter, r *http.Request, e access.Environment) (context.Context, *op.Error) {
			return n.rest.Admit(w, r, e, toolKeys{h.keys})
		},
		Challenge: h.oauth.Challenge, Lacking: h.oauth.ChallengeScopes, StepUp: h.keys.StepUp,
		Charge: n.rest.Corridor.Charge, DB: h.db, Log: h.log, Now: time.Now, Key: h.seal.Key("questions of tools"), BaseURL: h.config.BaseURL,
		Origins: config.SplitList(h.config.CORSOrigins), Version: op.Version, Extend: extendTools()})
	for _, path := range mcp.Paths {
		n.rest.Handle(path, n.tools)
	}
}

// closeTools ends the sessions of assistants.
func (n *Server) closeTools() {
	if n.tools != nil {
		n.tools.Close()
	}
}
