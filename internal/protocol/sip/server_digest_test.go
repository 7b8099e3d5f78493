package sip_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/digest"
	"soniq/internal/protocol/sip/resolve"
	"soniq/internal/protocol/sip/sipmsg"
)

// variableFields matches the parts that differ between any two challenges.
var variableFields = regexp.MustCompile(`nonce="[^"]*"|tag=\w+|branch=\w+|rport=\d+|Call-ID: \S+|127\.0\.0\.1:\d+|CSeq: \d+`)

func TestDigest_UnknownUserLooksLikeWrongPassword(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "secret")
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book})
	for _, method := range []string{"REGISTER", "INVITE"} {
		status, header := "SIP/2.0 401", "WWW-Authenticate"
		if method == "INVITE" {
			status, header = "SIP/2.0 407", "Proxy-Authenticate"
		}
		var answers []string
		for _, user := range []string{"alice", "nobody"} {
			p := newPeer(t, "udp", server)
			id := method + user
			p.sendRequest(method, user, id, 1, "")
			first := p.wantMessage(status)
			p.sendRequest(method, user, id, 2, "Authorization: "+digestAuthorization(headerValue(first, header), user, "wrong", method, 1)+"\n")
			second := p.wantMessage(status)
			if headerValue(first, header) == headerValue(second, header) {
				t.Errorf("%s: the challenge is not fresh", method)
			}
			if strings.Contains(second, "stale") || strings.Contains(second, "Server:") {
				t.Errorf("%s: the answer tells too much:\n%s", method, second)
			}
			answers = append(answers, strings.ReplaceAll(variableFields.ReplaceAllString(first+second, ""), user, ""))
		}
		if answers[0] != answers[1] {
			t.Errorf("%s: answers differ:\n%s\n%s", method, answers[0], answers[1])
		}
	}
	if n := server.Stats().AuthFailures; n != 4 {
		t.Errorf("%d failures counted, want 4", n)
	}
}

func TestDigest_NonceCountUsedOnce(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "secret")
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book})
	p := newPeer(t, "udp", server)
	p.sendRequest("REGISTER", "alice", "r1", 1, "")
	challenge := headerValue(p.wantMessage("SIP/2.0 401"), "WWW-Authenticate")
	seq := 1
	try := func(nc int, want string) string {
		t.Helper()
		seq++
		p.sendRequest("REGISTER", "alice", "r1", seq, "Authorization: "+digestAuthorization(challenge, "alice", "secret", "REGISTER", nc)+"\n")
		return p.wantMessage(want)
	}
	try(1, "SIP/2.0 200")
	if again := try(1, "SIP/2.0 401"); !strings.Contains(again, "stale=true") {
		t.Errorf("a replayed count is not called stale:\n%s", again)
	}
	try(3, "SIP/2.0 200")
	try(2, "SIP/2.0 200") // reordered by the network
	for _, used := range []int{1, 2, 3} {
		try(used, "SIP/2.0 401")
	}
}

func TestDigest_UnknownNonceIsStale(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "secret")
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book})
	p := newPeer(t, "udp", server)
	made := `Digest realm="sip", nonce="ours-before-a-restart", algorithm=MD5`
	p.sendRequest("REGISTER", "alice", "r1", 1, "Authorization: "+digestAuthorization(made, "alice", "secret", "REGISTER", 1)+"\n")
	if m := p.wantMessage("SIP/2.0 401"); !strings.Contains(m, "stale=true") {
		t.Errorf("not stale:\n%s", m)
	}
}

func TestDigest_SHA256OnlyIfConfigured(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "secret").addAccount("bob", "secret")
	a := book.accounts["bob"]
	a.WantSHA256 = true
	book.accounts["bob"] = a
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book})
	for user, alg := range map[string]string{"alice": "algorithm=MD5", "bob": "algorithm=SHA-256", "nobody": "algorithm=MD5"} {
		p := newPeer(t, "udp", server)
		p.sendRequest("REGISTER", user, "r"+user, 1, "")
		challenge := headerValue(p.wantMessage("SIP/2.0 401"), "WWW-Authenticate")
		if !strings.Contains(challenge, alg) {
			t.Errorf("%s is challenged with %s, want %s", user, challenge, alg)
		}
		if user != "nobody" {
			p.sendRequest("REGISTER", user, "r"+user, 2, "Authorization: "+digestAuthorization(challenge, user, "secret", "REGISTER", 1)+"\n")
			p.wantMessage("SIP/2.0 200")
		}
	}
}

func TestBan_PasswordGuessing(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "secret")
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book, Limits: sip.Limits{FailedLogins: 5}})
	p := newPeer(t, "udp", server)
	p.sendRequest("REGISTER", "alice", "g", 1, "")
	challenge := headerValue(p.wantMessage("SIP/2.0 401"), "WWW-Authenticate")
	for i := range 5 {
		p.sendRequest("REGISTER", "alice", "g", i+2, "Authorization: "+digestAuthorization(challenge, "alice", "guess", "REGISTER", i+1)+"\n")
		p.wantMessage("SIP/2.0 401")
	}
	p.sendRequest("REGISTER", "alice", "g", 9, "")
	p.wantSilence(200 * time.Millisecond)
}

func TestBan_NotForForgedGuesses(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "secret")
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book, Limits: sip.Limits{FailedLogins: 5}})
	p := newPeer(t, "udp", server)
	made := `Digest realm="sip", nonce="guessed", algorithm=MD5` // a sender with a forged source never receives our nonce
	for i := range 20 {
		p.sendRequest("REGISTER", "alice", "g", i+1, "Authorization: "+digestAuthorization(made, "alice", "guess", "REGISTER", i+1)+"\n")
		p.wantMessage("SIP/2.0 401")
	}
}

func TestAdmission_RateLimitPerUntrustedSource(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{Accounts: newFakeDirectory(), Limits: sip.Limits{SourcePerSecond: 20}})
	p := newPeer(t, "udp", server)
	for i := range 200 {
		p.sendRequest("OPTIONS", "x", "flood", i+1, "")
	}
	deadline := time.Now().Add(testTimeout)
	for server.Stats().Received < 200 && time.Now().Before(deadline) {
		<-time.After(time.Millisecond)
	}
	if n := server.Stats().Dropped; n < 140 {
		t.Errorf("%d of 200 dropped, want all but a second's worth of 20", n)
	}
}

func TestRegisterClient_RegistersAndUnregisters(t *testing.T) {
	t.Parallel()
	for _, transport := range bothTransports {
		book := newFakeDirectory().addAccount("alice", "secret")
		server := newTestServer(t, sip.Config{Accounts: book, Bindings: book})
		ph := newTestServer(t, sip.Config{})
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		defer cancel()
		reg, err := ph.Register(ctx, sip.RegistrationConfig{
			Registrar: resolve.Target{Host: server.Addr().String(), Transport: transport},
			AOR:       "sip:alice@example.com", Credentials: digest.Credentials{Username: "alice", Password: "secret"},
			Expires: 10 * time.Second, // too short: 423 raises it
		})
		if err != nil {
			t.Fatal(err)
		}
		all, _ := book.Load(ctx, "id-alice")
		if len(all) != 1 || all[0].Transport != transport || !server.Reachable(all[0]) {
			t.Fatalf("bindings: %+v", all)
		}

		// A call to the phone uses the flow of its REGISTER, and the phone's own call is authenticated.
		out := newEventLog()
		if _, err := server.Server.Invite(ctx, sip.Outgoing{Binding: &all[0], SDP: testOfferSDP}, out.record); err != nil {
			t.Fatal(err)
		}
		in := ph.wantInbound(t)
		if in.RequestURI.User != "alice" || in.Transport != transport {
			t.Errorf("call to the phone reads %+v", in)
		}
		in.Reject(603, "", 0)
		wantEvent[sip.Failed](t, out)
		own := newEventLog()
		_, err = ph.Server.Invite(ctx, sip.Outgoing{
			URI: server.uri("1000"), NextHop: resolve.Target{Host: server.Addr().String(), Transport: transport},
			From: sipmsg.Address{URI: sipmsg.URI{User: "alice"}}, SDP: testOfferSDP,
			Credentials: digest.Credentials{Username: "alice", Password: "secret"},
		}, own.record)
		if err != nil {
			t.Fatal(err)
		}
		if in := server.wantInbound(t); in.Account != "id-alice" {
			t.Errorf("the call is from account %q", in.Account)
		} else {
			in.Reject(404, "", 0)
		}
		wantEvent[sip.Failed](t, own)

		if err := reg.Unregister(ctx); err != nil {
			t.Fatal(err)
		}
		if all, _ := book.Load(ctx, "id-alice"); len(all) != 0 {
			t.Errorf("bindings after unregistering: %+v", all)
		}
	}
}

// Credentials count for the request they were made for (RFC 7616 §3.4.6).
func TestDigest_URIMustBeTheRequests(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "secret")
	server := newTestServer(t, sip.Config{Accounts: book, Names: []string{"pbx.example"}})
	for i, c := range []struct{ uri, called, status string }{
		{"sip:100@pbx.example", "sip:100@pbx.example", "200"},
		{"sip:100@PBX.example;transport=udp", "sip:100@pbx.example", "200"},
		{"sip:100@pbx.example", "sip:100@127.0.0.1:5060", "200"}, // a proxy or the phone replaced the host
		{"sip:pbx.example", "sip:100@pbx.example", "200"},        // without a user
		{"sip:100@pbx.example", "sip:900@pbx.example", "400"},
		{"sip:100@elsewhere.example", "sip:100@pbx.example", "400"},
		{"", "sip:100@pbx.example", "400"},
	} {
		p := newPeer(t, "udp", server)
		invite := func(seq int, extra string) {
			p.send("INVITE %s SIP/2.0\nVia: SIP/2.0/UDP z;rport;branch=z9hG4bKu%d%d\nMax-Forwards: 70\nFrom: <sip:alice@x>;tag=f\nTo: <sip:100@x>\nCall-ID: uri%d\nCSeq: %d INVITE\nContact: <sip:a@z>\n%sContent-Length: 0\n\n",
				c.called, i, seq, i, seq, extra)
		}
		invite(1, "")
		challenge := headerValue(p.wantMessage("SIP/2.0 407"), "Proxy-Authenticate")
		if c.status == "200" {
			go func() { (<-server.calls).Answer(testAnswerSDP) }()
		}
		invite(2, "Proxy-Authorization: "+digestAuthorizationFor(c.uri, challenge, "alice", "secret", "INVITE", 1)+"\n")
		m := p.read()
		for strings.Contains(m, " 1 INVITE") || strings.HasPrefix(m, "SIP/2.0 100") {
			m = p.read()
		}
		if got := strings.Fields(m)[1]; got != c.status {
			t.Errorf("credentials for %q at %q got %s, want %s", c.uri, c.called, got, c.status)
		}
	}
}
