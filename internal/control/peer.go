package control

import (
	"context"
	"net"
)

type peerKey struct{}

// Peer returns the ID of the user of the operating system that sent the request. ok is false outside of a request, or if the system
// does not tell.
func Peer(ctx context.Context) (id string, ok bool) {
	id, ok = ctx.Value(peerKey{}).(string)
	return id, ok
}

// withPeer stores the user at the other end of a connection.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	if id, ok := peerOf(c); ok {
		return context.WithValue(ctx, peerKey{}, id)
	}
	return ctx
}
