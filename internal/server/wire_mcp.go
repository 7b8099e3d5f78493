package server

import (
	"context"
	"net/http"
	"net/netip"

	"soniq/internal/api/mcp"
	"soniq/internal/api/rest"
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

// toolAPI is the REST API for MCP clients, with their own credentials.
type toolAPI struct {
	*rest.Server
	keys toolKeys
}

// Admit authenticates a request of an MCP client.
func (a toolAPI) Admit(w http.ResponseWriter, r *http.Request, e access.Environment) (context.Context, *op.Error) {
	return a.Server.Admit(w, r, e, a.keys)
}

// toolOAuth implements mcp.OAuth.
type toolOAuth struct {
	*auth.OAuth
	keys *auth.Service
}

// StepUp lets the client ask for more scopes.
func (o toolOAuth) StepUp(ctx context.Context, p access.Principal) error {
	return o.keys.StepUp(ctx, p)
}

// openTools serves the MCP tools beside the operations that they call.
func (s *Server) openTools() {
	p := s.Platform
	s.tools = mcp.New(mcp.Config{Operations: s.rest.Operations(), API: toolAPI{s.rest, toolKeys{p.keys}}, OAuth: toolOAuth{p.oauth, p.keys},
		DB: p.db, Log: p.log, Key: p.seal.Key("questions of tools"), BaseURL: p.config.BaseURL,
		Origins: config.SplitList(p.config.CORSOrigins), Version: op.Version, Extension: toolExtension()})
	for _, path := range mcp.Paths {
		s.rest.Handle(path, s.tools)
	}
}
