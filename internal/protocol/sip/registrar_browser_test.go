package sip_test

import (
	"context"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
)

// The registration of a browser whose page is gone ends. That of a page that was loaded again stays. So do that of a desk phone and that
// of the same browser at another node.
func TestBrowser_RegistrationEndsWithoutConnection(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "secret").addAccount("bob", "secret").addAccount("carol", "secret").addAccount("dave", "secret")
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book, Node: "here",
		Limits: sip.Limits{BrowserTimeout: 100 * time.Millisecond}})
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

// The bindings tell a browser that is lost from one whose person turned it off: it is lost without its connection, and when it unregisters
// because it cannot take calls for now.
func TestBrowser_LostOrTurnedOff(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "secret").addAccount("bob", "secret").addAccount("carol", "secret")
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book, Limits: sip.Limits{BrowserTimeout: 100 * time.Millisecond}})
	address := serveWebSocket(t, server)
	lostAt := func(account string) time.Time {
		book.mu.Lock()
		defer book.mu.Unlock()
		return book.lost[account]
	}
	unregister := func(user, reason string) {
		t.Helper()
		p := newWebSocketPeer(t, address)
		p.register(user, "secret")
		p.sendRequest("REGISTER", user, "reg-"+user, 3, "")
		challenge := headerValue(p.wantMessage("SIP/2.0 401"), "WWW-Authenticate")
		p.sendRequest("REGISTER", user, "reg-"+user, 4, "Expires: 0\n"+reason+"Authorization: "+
			digestAuthorization(challenge, user, "secret", "REGISTER", 1)+"\n")
		p.wantMessage("SIP/2.0 200")
		if all, _ := book.Load(context.Background(), "id-"+user); len(all) != 0 {
			t.Errorf("%s unregistered and has %d bindings", user, len(all))
		}
	}
	unregister("alice", "")
	unregister("bob", "Reason: SIP;cause=480;text=\"No microphone\"\n")
	began := time.Now()
	carol := newWebSocketPeer(t, address)
	carol.register("carol", "secret")
	carol.conn.Close()
	waitUntil(t, "the registration of the browser that is gone to end", func() bool { return !lostAt("id-carol").IsZero() })
	if at := lostAt("id-carol"); at.Before(began) || time.Since(at) < 100*time.Millisecond {
		t.Errorf("the connection that began at %v was lost at %v", began, at)
	}
	if lostAt("id-bob").IsZero() || !lostAt("id-alice").IsZero() {
		t.Errorf("without a microphone lost at %v, turned off at %v", lostAt("id-bob"), lostAt("id-alice"))
	}
}
