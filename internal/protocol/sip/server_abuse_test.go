package sip_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
)

// newPeerFrom returns a peer at an address of this machine.
func newPeerFrom(t testing.TB, network string, server *testServer, source string) *peer {
	t.Helper()
	d := net.Dialer{}
	if network == "udp" {
		d.LocalAddr = &net.UDPAddr{IP: net.ParseIP(source)}
	} else {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(source)}
	}
	conn, err := d.Dial(network, server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &peer{t: t, conn: conn, in: bufio.NewReaderSize(conn, 65536), tcp: network == "tcp"}
}

var guessSerial atomic.Int64

// tryPassword tries a password and returns the status.
func (p *peer) tryPassword(user, password string) string {
	p.t.Helper()
	id := fmt.Sprint("guess", guessSerial.Add(1))
	p.sendRequest("REGISTER", user, id, 1, "")
	challenge := headerValue(p.wantMessage("SIP/2.0 401"), "WWW-Authenticate")
	p.sendRequest("REGISTER", user, id, 2, "Authorization: "+digestAuthorization(challenge, user, password, "REGISTER", 1)+"\n")
	return strings.Fields(p.read())[1]
}

func TestBan_ScannerIsIgnored(t *testing.T) {
	t.Parallel()
	type call struct {
		source netip.Addr
		why    string
	}
	banned := make(chan call, 10)
	server := newTestServer(t, sip.Config{Accounts: newFakeDirectory(), OnBan: func(a netip.Addr, _ time.Time, why string) {
		banned <- call{a, why}
	}})
	scanner, other := newPeerFrom(t, "udp", server, "127.0.0.2"), newPeerFrom(t, "udp", server, "127.0.0.3")
	scanner.sendRequest("OPTIONS", "100", "s", 1, "User-Agent: friendly-scanner\n")
	if c := <-banned; c.source.String() != "127.0.0.2" || c.why == "" {
		t.Errorf("banned %+v", c)
	}
	scanner.sendRequest("OPTIONS", "100", "t", 1, "")
	scanner.wantSilence(100 * time.Millisecond)
	scanner.sendRequest("REGISTER", "100", "u", 1, "")
	scanner.wantSilence(100 * time.Millisecond)
	other.sendRequest("OPTIONS", "100", "v", 1, "")
	other.wantMessage("SIP/2.0 200")
	all := server.Bans()
	if len(all) != 1 || all[0].Source.String() != "127.0.0.2" || all[0].Times != 1 || time.Until(all[0].Until) < 4*time.Minute {
		t.Errorf("bans %+v", all)
	}
	if !server.Unban(netip.MustParseAddr("127.0.0.2")) || server.Unban(netip.MustParseAddr("127.0.0.9")) {
		t.Error("unban")
	}
	scanner.sendRequest("OPTIONS", "100", "w", 1, "")
	scanner.wantMessage("SIP/2.0 200")
}

func TestBan_ProbingSources(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		probe func(p *peer, i int)
	}{
		{"extensions", func(p *peer, i int) { p.sendRequest("REGISTER", fmt.Sprint(i), fmt.Sprint("e", i), 1, "") }},
		{"calls", func(p *peer, i int) { p.sendRequest("INVITE", fmt.Sprint(i), fmt.Sprint("c", i), 1, "") }},
		{"messages", func(p *peer, i int) { p.sendRequest("MESSAGE", fmt.Sprint(i), fmt.Sprint("m", i), 1, "") }},
		{"nonsense", func(p *peer, i int) {
			p.send("OPTIONS sip:x SIP/2.0\nVia: SIP/2.0/UDP x;rport;branch=z9hG4bK%d\nCall-ID: n%d\nCSeq: 1 BYE\n\n", i, i)
		}},
		{"dialogs", func(p *peer, i int) {
			p.send("BYE sip:x SIP/2.0\nVia: SIP/2.0/UDP x;rport;branch=z9hG4bK%d\nFrom: <sip:a@b>;tag=1\nTo: <sip:a@b>;tag=2\nCall-ID: d%d\nCSeq: 1 BYE\n\n", i, i)
		}},
		{"connections", func(p *peer, i int) {
			if c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}).Dial("tcp",
				p.conn.RemoteAddr().String()); err == nil {
				c.Close()
			}
			if i == 1000 {
				p.sendRequest("OPTIONS", "x", "last", 1, "")
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := newTestServer(t, sip.Config{Accounts: newFakeDirectory(), Bindings: newFakeDirectory(),
				Limits:    sip.Limits{Probes: 10},
				OnMessage: func(_ context.Context, m *sip.Message) { m.Respond(202) }})
			p := newPeerFrom(t, "udp", server, "127.0.0.2")
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for i := 0; len(server.Bans()) == 0 && i < 100; i++ {
				c.probe(p, i)
				<-tick.C
			}
			if all := server.Bans(); len(all) != 1 || all[0].Times != 1 {
				t.Fatalf("bans %+v", all)
			}
			p.conn.Close()
			p = newPeerFrom(t, "udp", server, "127.0.0.2")
			c.probe(p, 1000)
			p.wantSilence(100 * time.Millisecond)
		})
	}
}

func TestBan_NotForPhonesStartingTogether(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory()
	var challenges [50]string
	for i := range challenges {
		book.addAccount(fmt.Sprint("u", i), "pw")
	}
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book, Limits: sip.Limits{Probes: 10}})
	p := newPeer(t, "udp", server)
	for i := range challenges {
		p.sendRequest("REGISTER", fmt.Sprint("u", i), fmt.Sprint("r", i), 1, "")
		challenges[i] = headerValue(p.wantMessage("SIP/2.0 401"), "WWW-Authenticate")
	}
	for i, c := range challenges {
		user := fmt.Sprint("u", i)
		p.sendRequest("REGISTER", user, fmt.Sprint("r", i), 2, "Authorization: "+digestAuthorization(c, user, "pw", "REGISTER", 1)+"\n")
		p.wantMessage("SIP/2.0 200")
	}
}

func TestBan_NeverForTrunks(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory()
	book.trunks = []netip.Addr{netip.MustParseAddr("127.0.0.2")}
	server := newTestServer(t, sip.Config{Accounts: book})
	p := newPeerFrom(t, "udp", server, "127.0.0.2")
	p.sendRequest("OPTIONS", "100", "s", 1, "User-Agent: friendly-scanner\n") // any source can forge this
	answered := false
	for i := 0; !answered && i < 100; i++ {
		p.sendRequest("OPTIONS", "100", fmt.Sprint("o", i), 1, "")
		p.conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, err := p.conn.Read(make([]byte, 4096))
		answered = err == nil
	}
	if !answered || len(server.Bans()) != 0 {
		t.Errorf("answered %v, bans %+v", answered, server.Bans())
	}
}

func TestBan_KeepsCalls(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"udp", "tcp"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			book := newFakeDirectory().addAccount("alice", "secret").addAccount("bob", "other")
			server := newTestServer(t, sip.Config{Accounts: book, Bindings: book, Limits: sip.Limits{FailedLogins: 5}})
			p := newPeerFrom(t, network, server, "127.0.0.2")
			p.sendRequest("INVITE", "alice", "call", 1, "")
			challenge := headerValue(p.wantMessage("SIP/2.0 407"), "Proxy-Authenticate")
			p.sendRequest("INVITE", "alice", "call", 2, "Proxy-Authorization: "+digestAuthorization(challenge, "alice", "secret", "INVITE", 1)+"\n")
			in, e := server.wantInbound(t), newEventLog()
			in.Listen(e.record)
			in.Answer(testAnswerSDP)
			ok := p.wantMessage("SIP/2.0 200")
			inside := func(method string, seq int) {
				p.send("%s sip:x@y SIP/2.0\nVia: SIP/2.0/X z;rport;branch=z9hG4bKin%d%s\nFrom: %s\nTo: %s\nCall-ID: call\nCSeq: %d %s\nMax-Forwards: 70\nContent-Length: 0\n\n",
					method, seq, method, headerValue(ok, "From"), headerValue(ok, "To"), seq, method)
			}
			inside("ACK", 2)
			wantEvent[sip.Acked](t, e)

			guesser := newPeerFrom(t, network, server, "127.0.0.2")
			for range 4 {
				guesser.tryPassword("bob", "guess")
			}
			guesser.sendRequest("REGISTER", "bob", "last", 1, "")
			challenge = headerValue(guesser.wantMessage("SIP/2.0 401"), "WWW-Authenticate")
			guesser.sendRequest("REGISTER", "bob", "last", 2, "Authorization: "+digestAuthorization(challenge, "bob", "guess", "REGISTER", 1)+"\n")
			waitUntil(t, "the ban", func() bool { return len(server.Bans()) == 1 })
			inside("BYE", 3)
			for !strings.Contains(p.wantMessage("SIP/2.0 200"), "3 BYE") { // on a slow machine the answer to INVITE is repeated before
			}
			wantEvent[sip.Bye](t, e)
			inside("BYE", 4) // the dialog no longer exists
			p.wantSilence(100 * time.Millisecond)
			if network == "tcp" {
				late := newPeerFrom(t, network, server, "127.0.0.2")
				late.sendRequest("REGISTER", "bob", "late", 1, "")
				late.wantSilence(100 * time.Millisecond)
			}
		})
	}
}

func TestDigest_GuessingFromManySourcesIsLimited(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "secret").addAccount("bob", "other")
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book, Limits: sip.Limits{AccountFailures: 10}})
	home := newPeerFrom(t, "udp", server, "127.0.0.9")
	if s := home.tryPassword("alice", "secret"); s != "200" {
		t.Fatalf("the phone itself got %s", s)
	}
	for i := range 12 {
		p := newPeerFrom(t, "udp", server, fmt.Sprintf("127.0.1.%d", i+1))
		if s := p.tryPassword("alice", "guess"); s != "401" {
			t.Fatalf("a guess got %s", s)
		}
	}
	lucky := newPeerFrom(t, "udp", server, "127.0.2.1")
	if s := lucky.tryPassword("alice", "secret"); s != "401" {
		t.Errorf("the right password among many guesses got %s", s)
	}
	if s := home.tryPassword("alice", "secret"); s != "200" {
		t.Errorf("the phone where it always was got %s", s)
	}
	if s := newPeerFrom(t, "udp", server, "127.0.2.2").tryPassword("bob", "other"); s != "200" {
		t.Errorf("another account got %s", s)
	}
}

func TestResponses_NoProductOrVersion(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "secret")
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book})
	p := newPeer(t, "udp", server)
	for i, method := range []string{"OPTIONS", "REGISTER", "INVITE", "BYE", "MESSAGE", "SUBSCRIBE", "BOGUS"} {
		p.sendRequest(method, "alice", fmt.Sprint("b", i), 1, "")
		m := strings.ToLower(p.wantMessage("SIP/2.0 "))
		for _, word := range []string{"\nserver:", "\nuser-agent:", "soniq", "go1."} {
			if strings.Contains(m, word) {
				t.Errorf("the answer to %s says %q:\n%s", method, word, m)
			}
		}
	}
	e := newEventLog()
	far := newTestServer(t, sip.Config{})
	server.Server.Invite(context.Background(), sip.Outgoing{URI: far.uri("bob"), SDP: testOfferSDP}, e.record)
	in := far.wantInbound(t)
	if in.UserAgent != "" || in.Header("Server") != "" {
		t.Errorf("our INVITE says %q", in.UserAgent)
	}
	in.Reject(486, "", 0)
}

func TestConnection_LimitPerUntrustedSource(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "secret")
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book, Limits: sip.Limits{SourceConnections: 4}})
	for range 4 {
		newPeerFrom(t, "tcp", server, "127.0.0.2")
	}
	waitUntil(t, "four connections", func() bool { return server.Stats().Connections == 4 })
	fifth := newPeerFrom(t, "tcp", server, "127.0.0.2")
	fifth.conn.SetReadDeadline(time.Now().Add(testTimeout))
	if _, err := fifth.conn.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("the fifth connection: %v", err)
	}
	phone := newPeerFrom(t, "tcp", server, "127.0.0.3")
	phone.register("alice", "secret")
	for range 6 { // a trusted source may have more
		newPeerFrom(t, "tcp", server, "127.0.0.3")
	}
	waitUntil(t, "the phone's connections", func() bool { return server.Stats().Connections == 11 })
}

// Where a phone is registered, silent connections of others make room for new ones. The phone's own stays.
func TestConnection_SilentOnesMakeRoom(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "secret").addAccount("bob", "other")
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book, Limits: sip.Limits{SourceConnections: 2}})
	phone := newPeerFrom(t, "tcp", server, "127.0.0.4")
	phone.register("alice", "secret")
	var silent []*peer
	for range 20 {
		silent = append(silent, newPeerFrom(t, "tcp", server, "127.0.0.4"))
	}
	for _, p := range silent[:4] { // the oldest ended
		p.conn.SetReadDeadline(time.Now().Add(testTimeout))
		if _, err := p.conn.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
			t.Fatalf("a silent connection: %v", err)
		}
	}
	waitUntil(t, "the limit", func() bool { return server.Stats().Connections == 17 })
	phone.sendRequest("OPTIONS", "alice", "alive", 1, "")
	phone.wantMessage("SIP/2.0 200")
	newPeerFrom(t, "tcp", server, "127.0.0.4").register("bob", "other")
}
