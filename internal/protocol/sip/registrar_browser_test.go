package sip_test

import (
	"context"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
)

// The registration of a browser whose page is gone ends. That of a page that was loaded again stays, and so do that of a desk phone and
// that of the same browser at another node.
func TestBrowser_RegistrationEndsWithoutConnection(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "secret").addAccount("bob", "secret").addAccount("carol", "secret").addAccount("dave", "secret")
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book, Node: "here", Limits: sip.Limits{BrowserTimeout: 100 * time.Millisecond}})
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
	dave := newWebSocketPeer(t, address)
	dave.register("dave", "secret")
	here, _ := book.Load(context.Background(), "id-dave")
	there := here[0]
	there.Node, there.Flow, there.Contact = "there", 1, "sip:dave@there.invalid;transport=ws"
	if err := book.Save(context.Background(), "id-dave", append(here, there)); err != nil {
		t.Fatal(err)
	}
	dave.conn.Close()
	bob := newWebSocketPeer(t, address)
	bob.register("bob", "secret")
	bob.conn.Close()
	waitUntil(t, "the registration of the browser that is gone to end", func() bool { return bindings("id-bob") == 0 })
	if n := bindings("id-alice"); n != 1 {
		t.Errorf("the page that was loaded again has %d bindings", n)
	}
	waitUntil(t, "the registration at this node to end", func() bool { return bindings("id-dave") == 1 })
	if left, _ := book.Load(context.Background(), "id-dave"); left[0].Node != "there" {
		t.Errorf("the registration at node %s is left", left[0].Node)
	}
	if n := bindings("id-carol"); n != 1 {
		t.Errorf("the desk phone has %d bindings", n)
	}
}
