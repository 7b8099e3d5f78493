package sip_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"soniq/internal/protocol/sip"
)

// throughEdge sends a request as a proxy forwards it for a client.
func (p *peer) throughEdge(method, user, client, id string, seq int, extra string) string {
	p.t.Helper()
	p.send("%s sip:x SIP/2.0\nVia: SIP/2.0/UDP edge;branch=z9hG4bKe%s%d;rport\nVia: SIP/2.0/UDP 10.9.9.9:5060;received=192.0.2.99;branch=z9hG4bKc%s%d;rport=5062;received=%s\nMax-Forwards: 70\nFrom: <sip:%s@x>;tag=f\nTo: <sip:%s@x>\nCall-ID: %s\nCSeq: %d %s\nContact: <sip:%s@10.9.9.9>\n%sContent-Length: 0\n\n",
		method, id, seq, id, seq, client, user, user, id, seq, method, user, extra)
	return p.read()
}

func TestEdge_BansTheClientBehindIt(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "secret").addAccount("bob", "other")
	book.trunks = []netip.Addr{netip.MustParseAddr("203.0.113.5")}
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book, Edges: []netip.Prefix{netip.MustParsePrefix("127.0.0.8/32")},
		Limits: sip.Limits{FailedLogins: 5}})
	edge := newPeerFrom(t, "udp", server, "127.0.0.8")
	register := func(user, password, client, id string) string {
		challenge := headerValue(edge.throughEdge("REGISTER", user, client, id, 1, ""), "WWW-Authenticate")
		if challenge == "" {
			return "403"
		}
		m := edge.throughEdge("REGISTER", user, client, id, 2, "Authorization: "+digestAuthorization(challenge, user, password, "REGISTER", 1)+"\n")
		return strings.Fields(m)[1]
	}
	for i := range 6 {
		register("bob", "guess", "198.51.100.7", fmt.Sprint("g", i))
	}
	waitUntil(t, "the ban", func() bool { return len(server.Bans()) == 1 })
	if b := server.Bans()[0]; b.Source.String() != "198.51.100.7" {
		t.Errorf("banned %s", b.Source)
	}
	if s := register("bob", "other", "198.51.100.7", "more"); s != "403" {
		t.Errorf("the edge is told of the ban by %s", s)
	}
	if s := register("alice", "secret", "198.51.100.8", "good"); s != "200" {
		t.Errorf("another client behind the edge got %s", s)
	}
	if m := edge.throughEdge("INVITE", "carrier", "203.0.113.5", "trunk", 1, ""); !strings.HasPrefix(m, "SIP/2.0 100") {
		t.Errorf("a trunk behind the edge got %s", m)
	}
	if in := server.wantInbound(t); in.Source.String() != "203.0.113.5:5062" {
		t.Errorf("the trunk's source is %s", in.Source)
	}
	// The second Via means nothing from anywhere else.
	stranger := newPeerFrom(t, "udp", server, "127.0.0.9")
	if m := stranger.throughEdge("INVITE", "carrier", "203.0.113.5", "forged", 1, ""); !strings.HasPrefix(m, "SIP/2.0 407") && !strings.HasPrefix(m, "SIP/2.0 100") {
		t.Errorf("a stranger got %s", m)
	}
	select {
	case in := <-server.calls:
		t.Errorf("a stranger passed as trunk %q", in.TrunkID)
	default:
	}
}
