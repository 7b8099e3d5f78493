package op

import "context"

// ToolCall describes a request that came through the MCP server: the client program and the called tool.
type ToolCall struct {
	Client string // name and version reported by the program; at most 120 characters
	Tool   string // or another target, such as a resource
	Scopes string // scopes of the credential, separated by spaces
}

type toolCallKey struct{}

// WithToolCall marks the context of a request from the MCP server.
func WithToolCall(ctx context.Context, v ToolCall) context.Context {
	return context.WithValue(ctx, toolCallKey{}, v)
}

// ToolCallOf returns the MCP tool call of the context; ok is false for other requests.
func ToolCallOf(ctx context.Context) (ToolCall, bool) {
	v, ok := ctx.Value(toolCallKey{}).(ToolCall)
	return v, ok
}

// SourceOf returns the entry point of a request, as stored with records: api or mcp.
func SourceOf(ctx context.Context) string {
	if _, ok := ToolCallOf(ctx); ok {
		return "mcp"
	}
	return "api"
}
