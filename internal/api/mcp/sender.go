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

// sender is the authenticated sender of a message, with its source address.
type sender struct {
	principal access.Principal
	source    netip.Addr
	request   string // id of the HTTP request
	body      []byte // body of a POST
	meta      string // _meta of the client that is not validated yet
}

// owner returns the identity to which sessions and streams belong: credential, organisation and environment.
func (v *sender) owner() string {
	p := v.principal
	return strings.Join([]string{p.Home(), p.OrgID, p.KeyID, p.UserID, string(p.Environment)}, " ")
}

type senderKey struct{}

// senderOf returns the sender of a request's message; nil if it is unknown.
func senderOf(ctx context.Context, extra *sdk.RequestExtra) *sender {
	if extra != nil && extra.TokenInfo != nil {
		v, _ := extra.TokenInfo.Extra["visit"].(*sender)
		return v
	}
	if s, ok := ctx.Value(streamKey{}).(*stream); ok {
		return s.lastSender.Load()
	}
	return nil
}

// bindSession passes the owner to the SDK, which binds sessions to it.
func (s *Server) bindSession(next http.Handler) http.Handler {
	known := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		v, ok := ctx.Value(senderKey{}).(*sender)
		if !ok {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: v.owner(), Expiration: time.Now().Add(time.Hour), Extra: map[string]any{"visit": v}}, nil
	}
	return auth.RequireBearerToken(known, nil)(next)
}

// operationContext returns the context for operations of a sender. what names the tool or the part of the server.
func (v *sender) operationContext(ctx context.Context, what, client string) context.Context {
	names := make([]string, len(v.principal.Scopes))
	for i, n := range v.principal.Scopes {
		names[i] = string(n)
	}
	ctx = op.WithToolCall(access.With(op.WithClientAddress(ctx, v.source), v.principal), op.ToolCall{Client: client, Tool: what,
		Scopes: strings.Join(names, " ")})
	ctx = op.WithRequestID(ctx, db.NewID("req"))
	return op.WithTarget(ctx, "MCP "+what)
}

// withScopes adds scopes for one operation: data that a tool is allowed to show under its own scope.
func withScopes(ctx context.Context, scopes ...access.Scope) context.Context {
	p, _ := access.From(ctx)
	p.Scopes = append(append([]access.Scope{}, p.Scopes...), scopes...)
	return access.With(ctx, p)
}

// clientName returns the name of a client, shortened and without control characters, for logs.
func clientName(i *sdk.Implementation) string {
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
