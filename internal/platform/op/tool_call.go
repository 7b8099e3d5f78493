package op

import "context"

// ToolCall describes a request that came through the MCP server: the client program and the called tool.
type Visit struct {
	Client string // name and version reported by the program; at most 120 characters
	Tool   string // or another target, such as a resource
	Scopes string // scopes of the credential, separated by spaces
}

type visitKey struct{}

// WithToolCall marks the context of a request from the MCP server.
func WithVisit(ctx context.Context, v Visit) context.Context {
	return context.WithValue(ctx, visitKey{}, v)
}

// ToolCallOf returns the MCP tool call of the context; ok is false for other requests.
func Visited(ctx context.Context) (Visit, bool) {
	v, ok := ctx.Value(visitKey{}).(Visit)
	return v, ok
}

// SourceOf returns the entry point of a request, as stored with records: api or mcp.
func DoorOf(ctx context.Context) string {
	if _, ok := Visited(ctx); ok {
		return "mcp"
	}
	return "api"
}
