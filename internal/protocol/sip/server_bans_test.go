package sip_test

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
)

// banSource guesses passwords of a user until the source of p is banned.
func banSource(t *testing.T, server *testServer, p *peer, user string) {
	t.Helper()
	for i := 0; len(server.Bans()) == 0; i++ {
		if i == 100 {
			t.Fatal("100 wrong passwords led to no ban")
		}
		p.sendRequest("REGISTER", user, fmt.Sprint("ban", i), 1, "")
		challenge := headerValue(p.wantMessage("SIP/2.0 401"), "WWW-Authenticate")
		p.sendRequest("REGISTER", user, fmt.Sprint("ban", i), 2, "Authorization: "+digestAuthorization(challenge, user, "guess", "REGISTER", 1)+"\n")
		p.wantMessage("SIP/2.0 401")
	}
}

func bannedOffice(t *testing.T) (*testServer, *fakeDirectory) {
	book := newFakeDirectory().addAccount("alice", "secret").addAccount("bob", "other")
	return newTestServer(t, sip.Config{Accounts: book, Bindings: book, Limits: sip.Limits{FailedLogins: 5},
		IsUrgent: func(called string) bool { return called == "999" }}), book
}

// inviteFrom calls a number with a password, and returns the final status.
func (p *peer) callWith(user, password, called, callID string) string {
	p.t.Helper()
	invite := func(seq int, extra string) {
		p.send("INVITE sip:%s@x SIP/2.0\nVia: SIP/2.0/X z;rport;branch=z9hG4bK%s%d\nMax-Forwards: 70\nFrom: <sip:%s@x>;tag=f%s\nTo: <sip:%s@x>\nCall-ID: %s\nCSeq: %d INVITE\nContact: <sip:%s@%s>\n%sContent-Length: 0\n\n",
			called, callID, seq, user, callID, called, callID, seq, user, p.conn.LocalAddr(), extra)
	}
	invite(1, "")
	challenge := headerValue(p.wantMessage("SIP/2.0 407"), "Proxy-Authenticate")
	invite(2, "Proxy-Authorization: "+digestAuthorization(challenge, user, password, "INVITE", 1)+"\n")
	for {
		m := p.read()
		if strings.Contains(m, " 2 INVITE") && !strings.HasPrefix(m, "SIP/2.0 100") {
			return strings.Fields(m)[1]
		}
	}
}

func TestBan_EmergencyCallIsAlwaysLookedAt(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"udp", "tcp"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			server, _ := bannedOffice(t)
			banSource(t, server, newPeerFrom(t, "udp", server, "127.0.0.2"), "bob")
			until := server.Bans()[0].Until
			go func() { (<-server.calls).Answer(testAnswerSDP) }()
			if s := newPeerFrom(t, network, server, "127.0.0.2").callWith("alice", "secret", "999", "help"); s != "200" {
				t.Errorf("an emergency call from a banned source got %s", s)
			}
			guesser := newPeerFrom(t, "udp", server, "127.0.0.2")
			for i := range 10 {
				if s := guesser.callWith("alice", "guess", "999", fmt.Sprint("g", i)); s != "407" {
					t.Errorf("a guess by an emergency call got %s", s)
				}
			}
			if all := server.Bans(); len(all) != 1 || !all[0].Until.Equal(until) || all[0].Times != 1 {
				t.Errorf("emergency calls changed the ban until %s to %+v", until, all)
			}
			other := newPeerFrom(t, "udp", server, "127.0.0.2")
			other.sendRequest("REGISTER", "bob", "again", 1, "")
			other.wantSilence(200 * time.Millisecond)
		})
	}
}

func TestBan_EmergencyCallsAreLimited(t *testing.T) {
	t.Parallel()
	server, _ := bannedOffice(t)
	p := newPeerFrom(t, "udp", server, "127.0.0.2")
	banSource(t, server, p, "bob")
	before := server.Stats().Dropped
	for i := range 200 {
		p.send("INVITE sip:999@x SIP/2.0\nVia: SIP/2.0/UDP z;rport;branch=z9hG4bKf%d\nMax-Forwards: 70\nFrom: <sip:z@x>;tag=f\nTo: <sip:999@x>\nCall-ID: f%d\nCSeq: 1 INVITE\nContact: <sip:z@z>\nContent-Length: 0\n\n", i, i)
	}
	waitUntil(t, "dropped calls", func() bool { return server.Stats().Dropped-before > 100 })
}

func TestBan_RegisteredPhonesGoOn(t *testing.T) {
	t.Parallel()
	server, _ := bannedOffice(t)
	phone := newPeerFrom(t, "udp", server, "127.0.0.2")
	register := func(p *peer, id string) string {
		p.sendRequest("REGISTER", "alice", id, 1, "")
		challenge := headerValue(p.wantMessage("SIP/2.0 401"), "WWW-Authenticate")
		p.sendRequest("REGISTER", "alice", id, 2, "Authorization: "+digestAuthorization(challenge, "alice", "secret", "REGISTER", 1)+"\n")
		return strings.Fields(p.read())[1]
	}
	if s := register(phone, "first"); s != "200" {
		t.Fatal(s)
	}
	guesser := newPeerFrom(t, "udp", server, "127.0.0.2")
	banSource(t, server, guesser, "bob")
	guesser.sendRequest("REGISTER", "bob", "more", 1, "")
	guesser.wantSilence(200 * time.Millisecond)
	if s := register(phone, "second"); s != "200" {
		t.Errorf("the registered phone registers again: %s", s)
	}
	if s := register(newPeerFrom(t, "udp", server, "127.0.0.2"), "third"); s != "200" {
		t.Errorf("it registers from a new port: %s", s)
	}
	go func() { (<-server.calls).Answer(testAnswerSDP) }()
	if s := phone.callWith("alice", "secret", "123", "call"); s != "200" {
		t.Errorf("it calls: %s", s)
	}
	late := newPeerFrom(t, "tcp", server, "127.0.0.2")
	if s := register(late, "fourth"); s != "200" {
		t.Errorf("it registers over a new connection: %s", s)
	}
	// The name of a phone that is registered is no way around the ban for others.
	guesser.sendRequest("REGISTER", "alice", "steal", 1, "")
	challenge := headerValue(guesser.wantMessage("SIP/2.0 401"), "WWW-Authenticate")
	guesser.sendRequest("REGISTER", "alice", "steal", 2, "Authorization: "+digestAuthorization(challenge, "bob", "other", "REGISTER", 1)+"\n")
	guesser.wantSilence(200 * time.Millisecond)
}

func TestBan_ForgedSourcesEvictNoPhone(t *testing.T) {
	t.Parallel()
	server, _ := bannedOffice(t)
	phone := newPeerFrom(t, "udp", server, "127.0.0.2")
	if s := phone.tryPassword("alice", "secret"); s != "200" {
		t.Fatal(s)
	}
	forge := func(i int) string { return fmt.Sprintf("127.%d.%d.%d", 1+i>>16, i>>8&255, i&255) }
	for i := range 20_000 {
		c, err := net.DialUDP("udp", &net.UDPAddr{IP: net.ParseIP(forge(i))}, net.UDPAddrFromAddrPort(server.Addr()))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "OPTIONS sip:x SIP/2.0\r\nVia: SIP/2.0/UDP z;branch=z9hG4bKe%d\r\nCall-ID: e%d\r\n\r\n", i, i)
		c.Close()
	}
	newPeerFrom(t, "udp", server, "127.0.0.2").sendRequest("OPTIONS", "x", "forged", 1, "User-Agent: friendly-scanner\n")
	if s := phone.tryPassword("alice", "secret"); s != "200" {
		t.Errorf("the phone got %s", s)
	}
	for _, b := range server.Bans() {
		if b.Source == netip.MustParseAddr("127.0.0.2") {
			t.Errorf("one forged datagram banned a phone: %+v", b)
		}
	}
}
