package mcp

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// A visit is who sent a message, and from where.
type visit struct {
	principal access.Principal
	source    netip.Addr
	request   string // the id of the HTTP request
	body      []byte // of a post
	meta      string // how the client describes itself, where nobody has looked at that yet
}

// owner names who a session belongs to: the same credential, in the same organisation.
func (v *visit) owner() string {
	p := v.principal
	return strings.Join([]string{p.Home(), p.OrgID, p.KeyID, p.UserID, string(p.Environment)}, " ")
}

type visitKey struct{}

// visitOf finds who sent the message of a request.
func visitOf(ctx context.Context, extra *sdk.RequestExtra) *visit {
	if extra != nil && extra.TokenInfo != nil {
		v, _ := extra.TokenInfo.Extra["visit"].(*visit)
		return v
	}
	if s, ok := ctx.Value(streamKey{}).(*stream); ok {
		return s.visit.Load()
	}
	return nil
}

// bound hands the principal of the request to the library, which binds sessions to it.
func (s *Server) bound(next http.Handler) http.Handler {
	known := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		v, ok := ctx.Value(visitKey{}).(*visit)
		if !ok {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: v.owner(), Expiration: time.Now().Add(time.Hour), Extra: map[string]any{"visit": v}}, nil
	}
	return auth.RequireBearerToken(known, nil)(next)
}

// enter makes the context in which an operation is used for a visit, by a tool or another part of the server.
func (v *visit) enter(ctx context.Context, what, client string) context.Context {
	names := make([]string, len(v.principal.Scopes))
	for i, n := range v.principal.Scopes {
		names[i] = string(n)
	}
	ctx = op.WithToolCall(access.With(op.WithClientAddress(ctx, v.source), v.principal), op.ToolCall{Client: client, Tool: what, Scopes: strings.Join(names, " ")})
	ctx = op.WithRequestID(ctx, db.NewID("req"))
	return op.WithTarget(ctx, "MCP "+what)
}

// lend adds scopes for one operation: what a tool of the contract may show under its own scope.
func lend(ctx context.Context, scopes ...access.Scope) context.Context {
	p, _ := access.From(ctx)
	p.Scopes = append(append([]access.Scope{}, p.Scopes...), scopes...)
	return access.With(ctx, p)
}

// clientOf is how a client calls itself, cut to what a log can show.
func clientOf(i *sdk.Implementation) string {
	if i == nil || i.Name == "" {
		return "unnamed client"
	}
	name := strings.TrimSpace(i.Name + " " + i.Version)
	if len(name) > 120 {
		name = strings.ToValidUTF8(name[:120], "")
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, name)
}
