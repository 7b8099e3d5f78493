package sip_test

import (
	"net/netip"
	"testing"

	"soniq/internal/protocol/sip"
)

func TestInvite_PhoneAtTrunkAddressIsChallenged(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "secret")
	book.trunks = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book})
	p := newPeer(t, "udp", server)
	p.sendRequest("INVITE", "alice", "c1", 1, "")
	challenge := headerValue(p.wantMessage("SIP/2.0 407"), "Proxy-Authenticate")
	p.sendRequest("INVITE", "alice", "c1", 2, "Proxy-Authorization: "+digestAuthorization(challenge, "alice", "wrong", "INVITE", 1)+"\n")
	challenge = headerValue(p.wantMessage("SIP/2.0 407"), "Proxy-Authenticate")
	p.sendRequest("INVITE", "alice", "c1", 3, "Proxy-Authorization: "+digestAuthorization(challenge, "alice", "secret", "INVITE", 1)+"\n")
	if in := server.wantInbound(t); in.Account != "id-alice" || in.TrunkID != "" {
		t.Errorf("the phone's call is of account %q, trunk %q", in.Account, in.TrunkID)
	}
	for call, user := range map[string]string{"c2": "+493012345678", "c3": "anonymous", "c4": "somebody"} {
		p.sendRequest("INVITE", user, call, 1, "")
		if in := server.wantInbound(t); in.Account != "" || in.TrunkID != "trunk-1" {
			t.Errorf("the carrier's call from %s is of account %q, trunk %q", user, in.Account, in.TrunkID)
		}
	}
}
