package smpp

import (
	"context"
	"errors"
	"net"
)

// fakeHandler is a Handler of functions, which tests replace.
type fakeHandler struct {
	authenticate func(ctx context.Context, l Login) (Account, error)
	message      func(ctx context.Context, in Incoming) error
	query        func(ctx context.Context, account, id string) (QueryResponse, error) // nil: there are no messages
}

func (h *fakeHandler) Authenticate(ctx context.Context, l Login) (Account, error) {
	return h.authenticate(ctx, l)
}

func (h *fakeHandler) Message(ctx context.Context, in Incoming) error { return h.message(ctx, in) }

func (h *fakeHandler) Query(ctx context.Context, account, id string) (QueryResponse, error) {
	if h.query == nil {
		return QueryResponse{}, errors.New("unknown")
	}
	return h.query(ctx, account, id)
}

func (h *fakeHandler) NewID() string { return "" }

// handlerOf returns the handler of a server under test.
func handlerOf(c *ServerConfig) *fakeHandler { return c.Handler.(*fakeHandler) }

// fakeClient is a ClientHandler of functions, which tests replace.
type fakeClient struct {
	message func(ctx context.Context, in Incoming) error
	receipt func(ctx context.Context, r Receipt) error // nil: receipts are ignored
}

func (h *fakeClient) Message(ctx context.Context, in Incoming) error { return h.message(ctx, in) }

func (h *fakeClient) Receipt(ctx context.Context, r Receipt) error {
	if h.receipt == nil {
		return nil
	}
	return h.receipt(ctx, r)
}

func (h *fakeClient) StateChanged(error) {}

// clientOf returns the handler of a client under test.
func clientOf(c *Config) *fakeClient { return c.Handler.(*fakeClient) }

// acceptAll accepts every message.
func acceptAll(context.Context, Incoming) error { return nil }

// dialFunc is a Dialer of a function.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

func (f dialFunc) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return f(ctx, network, address)
}
