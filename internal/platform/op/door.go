package op

import "context"

// A Visit is what is known of a request that came through the tool server: the program that asks, and the tool it called.
type Visit struct {
	Client string // name and version of the program, as it says itself; at most 120 characters
	Tool   string // or what else was asked for, such as a resource
	Scopes string // those of the credential, separated by spaces
}

type visitKey struct{}

// WithVisit keeps that a request came through the tool server.
func WithVisit(ctx context.Context, v Visit) context.Context {
	return context.WithValue(ctx, visitKey{}, v)
}

// Visited says whether a request came through the tool server, and how.
func Visited(ctx context.Context) (Visit, bool) {
	v, ok := ctx.Value(visitKey{}).(Visit)
	return v, ok
}

// DoorOf names the door of a request, as records tell where they come from: api or mcp.
func DoorOf(ctx context.Context) string {
	if _, ok := Visited(ctx); ok {
		return "mcp"
	}
	return "api"
}
