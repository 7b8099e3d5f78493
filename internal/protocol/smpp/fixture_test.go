package smpp

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"
)

// waitTimeout bounds every wait of a test.
const waitTimeout = 20 * time.Second

// within returns the next value of a channel, and fails the test after waitTimeout.
func within[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(waitTimeout):
		t.Fatalf("no %s", what)
		panic("")
	}
}

// testServer is a server on a loopback port that records received messages.
type testServer struct {
	*Server
	address string
	got     chan Incoming
	stop    func()
}

func startServer(t *testing.T, change func(*ServerConfig)) *testServer {
	t.Helper()
	c := &testServer{got: make(chan Incoming, 1000)}
	config := ServerConfig{Handler: &fakeHandler{
		authenticate: func(_ context.Context, l Login) (Account, error) {
			if l.SystemID != "esme" || l.Password != "secret" {
				return Account{}, errors.New("wrong password")
			}
			return Account{ID: "acme"}, nil
		},
		message: func(_ context.Context, in Incoming) error { c.got <- in; return nil },
	}}
	if change != nil {
		change(&config)
	}
	var err error
	if c.Server, err = NewServer(config); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.address = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Serve(ctx, l) }()
	c.stop = sync.OnceFunc(func() {
		cancel()
		if err := within(t, ended, "end of the server"); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(c.stop)
	return c
}

// testClient is a client that records received messages and receipts.
type testClient struct {
	*Client
	got      chan Incoming
	receipts chan Receipt
	stop     func()
}

func startClient(t *testing.T, address string, change func(*Config)) *testClient {
	t.Helper()
	e := &testClient{got: make(chan Incoming, 1000), receipts: make(chan Receipt, 1000)}
	config := Config{Address: address, Dialer: &net.Dialer{}, SystemID: "esme", Password: "secret",
		Handler: &fakeClient{message: func(_ context.Context, in Incoming) error { e.got <- in; return nil },
			receipt: func(_ context.Context, r Receipt) error { e.receipts <- r; return nil }},
		ReconnectDelay: time.Millisecond, MaxReconnectDelay: 10 * time.Millisecond}
	if change != nil {
		change(&config)
	}
	var err error
	if e.Client, err = New(config); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { e.Run(ctx); close(ended) }()
	e.stop = sync.OnceFunc(func() { cancel(); within(t, ended, "end of the client") })
	t.Cleanup(e.stop)
	return e
}

func (e *testClient) waitBound(t *testing.T) *testClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	if err := e.WaitBound(ctx); err != nil {
		t.Fatalf("%v: %v", err, e.State())
	}
	return e
}

// asError returns the *Error of Submit.
func asError(t *testing.T, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no *Error", err)
	}
	return e
}

func newMessage(text string) Outgoing {
	return Outgoing{From: ParseAddress("+4930111"), To: ParseAddress("+4930222"), Text: text}
}
