package sip_test

import (
	"context"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
)

// The registration of a browser whose page is gone ends. That of a page that was loaded again stays, and so does that of a desk phone.
func TestBrowser_RegistrationEndsWithoutConnection(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "secret").addAccount("bob", "secret").addAccount("carol", "secret")
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book, Limits: sip.Limits{BrowserTimeout: 100 * time.Millisecond}})
	address := serveWebSocket(t, server)
	bindings := func(account string) int {
		all, err := book.Load(context.Background(), account)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	desk := newPeer(t, "tcp", server)
	desk.registerFlow("carol", "secret", 1)
	desk.conn.Close()
	alice := newWebSocketPeer(t, address)
	alice.register("alice", "secret")
	alice.conn.Close()
	newWebSocketPeer(t, address).register("alice", "secret")
	bob := newWebSocketPeer(t, address)
	bob.register("bob", "secret")
	bob.conn.Close()
	waitUntil(t, "the registration of the browser that is gone to end", func() bool { return bindings("id-bob") == 0 })
	if n := bindings("id-alice"); n != 1 {
		t.Errorf("the page that was loaded again has %d bindings", n)
	}
	if n := bindings("id-carol"); n != 1 {
		t.Errorf("the desk phone has %d bindings", n)
	}
}
