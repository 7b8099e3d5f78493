package sip_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
)

// phoneCall is an answered call of alice's phone.
type phoneCall struct {
	server *testServer
	phone  *peer
	in     *sip.Inbound
	events eventLog
	dialog string // From, To and Call-ID lines of alice's requests
}

// withPhones returns a server with the accounts alice and bob, and a trunk at 127.0.9.1 and 127.0.9.2.
func withPhones(t *testing.T, c sip.Config) (*testServer, *fakeDirectory) {
	t.Helper()
	book := newFakeDirectory().addAccount("alice", "secret").addAccount("bob", "other")
	book.trunks = []netip.Addr{netip.MustParseAddr("127.0.9.1"), netip.MustParseAddr("127.0.9.2")}
	c.Accounts, c.Bindings = book, book
	c.OnMessage = func(_ context.Context, m *sip.Message) { m.Respond(202) }
	return newTestServer(t, c), book
}

// callFrom calls from a phone of alice, with the digest of her password, and acknowledges the answer.
func callFrom(t *testing.T, server *testServer, p *peer) *phoneCall {
	t.Helper()
	p.sendRequest("INVITE", "alice", "call-1", 1, "")
	challenge := headerValue(p.wantMessage("SIP/2.0 407"), "Proxy-Authenticate")
	p.sendRequest("INVITE", "alice", "call-1", 2, "Proxy-Authorization: "+digestAuthorization(challenge, "alice", "secret", "INVITE", 1)+"\n")
	return answerCall(t, server, p, 2)
}

// answerCall answers the call of a peer.
func answerCall(t *testing.T, server *testServer, p *peer, seq int) *phoneCall {
	t.Helper()
	c := &phoneCall{server: server, phone: p, in: server.wantInbound(t), events: newEventLog()}
	c.in.Listen(c.events.record)
	c.in.Answer(testAnswerSDP)
	ok := p.read()
	for !strings.HasPrefix(ok, "SIP/2.0 200") {
		ok = p.read()
	}
	c.dialog = "From: " + headerValue(ok, "From") + "\nTo: " + headerValue(ok, "To") + "\nCall-ID: " + headerValue(ok, "Call-ID") + "\n"
	p.sendInDialog("ACK", c.dialog, seq, "", "")
	wantEvent[sip.Acked](t, c.events)
	return c
}

// hangUp ends the call from its own phone.
func (c *phoneCall) hangUp(t *testing.T, seq int) {
	t.Helper()
	wantNoEvent(t, c.events)
	c.phone.sendInDialog("BYE", c.dialog, seq, "", "")
	c.phone.wantMessage("SIP/2.0 200")
	wantEvent[sip.Bye](t, c.events)
}

// dialogMethods are the methods of requests inside a dialog, each with the fields it needs.
var dialogMethods = map[string]string{"INVITE": "Content-Type: application/sdp\n", "UPDATE": "Content-Type: application/sdp\n", "BYE": "",
	"INFO": "", "REFER": "Refer-To: <sip:mallory@x>\n", "NOTIFY": "Event: refer\nSubscription-State: active\n", "MESSAGE": "", "OPTIONS": "",
	"PRACK": "RAck: 1 1 INVITE\n"}

func TestStray_PhoneIsChallenged(t *testing.T) {
	t.Parallel()
	server, _ := withPhones(t, sip.Config{})
	c := callFrom(t, server, newPeer(t, "udp", server))
	for method, extra := range dialogMethods {
		for _, from := range []string{"127.0.6.6", "127.0.0.1"} { // another address, and another port of the phone's
			attacker, body := newPeerFrom(t, "udp", server, from), ""
			if strings.Contains(extra, "sdp") {
				body = string(testOfferSDP)
			}
			attacker.sendInDialog(method, c.dialog, 900, extra, body)
			if m := attacker.wantMessage("SIP/2.0 407"); headerValue(m, "Proxy-Authenticate") == "" {
				t.Errorf("%s from %s: %s", method, from, m)
			}
		}
	}
	c.hangUp(t, 3) // although the attacker used a higher CSeq
}

func TestStray_PhoneRoamsByPassword(t *testing.T) {
	t.Parallel()
	server, _ := withPhones(t, sip.Config{})
	c := callFrom(t, server, newPeer(t, "udp", server))
	attempt := func(user, password string) string {
		p := newPeerFrom(t, "udp", server, "127.0.6.7")
		p.sendInDialog("INFO", c.dialog, 3, "", "")
		challenge := headerValue(p.wantMessage("SIP/2.0 407"), "Proxy-Authenticate")
		p.sendInDialog("INFO", c.dialog, 4, "Proxy-Authorization: "+digestAuthorization(challenge, user, password, "INFO", 1)+"\n", "")
		c.phone = p
		return strings.Fields(p.read())[1]
	}
	if s := attempt("bob", "other"); s != "403" {
		t.Errorf("another user's password: %s", s)
	}
	if s := attempt("alice", "guess"); s != "407" {
		t.Errorf("a wrong password: %s", s)
	}
	if s := attempt("alice", "secret"); s != "200" {
		t.Fatalf("the phone at its new address: %s", s)
	}
	c.hangUp(t, 5) // its new address is known now
}

func TestStray_PhoneRoamsByRegistration(t *testing.T) {
	t.Parallel()
	server, _ := withPhones(t, sip.Config{})
	c := callFrom(t, server, newPeer(t, "udp", server))
	p := newPeerFrom(t, "udp", server, "127.0.6.8")
	p.sendRequest("REGISTER", "alice", "reg-1", 1, "")
	challenge := headerValue(p.wantMessage("SIP/2.0 401"), "WWW-Authenticate")
	p.sendRequest("REGISTER", "alice", "reg-1", 2, "Authorization: "+digestAuthorization(challenge, "alice", "secret", "REGISTER", 1)+"\n")
	p.wantMessage("SIP/2.0 200")
	c.phone = p
	c.hangUp(t, 3)
}

// A call to a phone belongs to the account that registered the phone.
func TestStray_CalledPhone(t *testing.T) {
	t.Parallel()
	server, _ := withPhones(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEventLog()
	at := sip.Binding{Account: "id-bob", Contact: "sip:bob@phone.invalid", Transport: sipmsg.UDP,
		Source: netip.MustParseAddrPort(p.conn.LocalAddr().String())}
	if _, err := server.Server.Invite(testContext(t), sip.Outgoing{Binding: &at, SDP: testOfferSDP}, e.record); err != nil {
		t.Fatal(err)
	}
	invite := p.wantMessage("INVITE ")
	p.respond(invite, 200, "one", "")
	p.wantMessage("ACK ")
	wantEvent[sip.Answered](t, e)
	dialog := "From: " + headerValue(invite, "To") + ";tag=one\nTo: " + headerValue(invite, "From") + "\nCall-ID: " + headerValue(invite, "Call-ID") + "\n"
	for user, want := range map[string]string{"alice": "403", "bob": "200"} {
		stranger := newPeerFrom(t, "udp", server, "127.0.6.9")
		stranger.sendInDialog("INFO", dialog, 1, "", "")
		challenge := headerValue(stranger.wantMessage("SIP/2.0 407"), "Proxy-Authenticate")
		password := map[string]string{"alice": "secret", "bob": "other"}[user]
		stranger.sendInDialog("INFO", dialog, 2, "Proxy-Authorization: "+digestAuthorization(challenge, user, password, "INFO", 1)+"\n", "")
		if s := strings.Fields(stranger.read())[1]; s != want {
			t.Errorf("%s: %s, want %s", user, s, want)
		}
	}
	wantNoEvent(t, e)
}

func TestStray_ConnectionOfPhone(t *testing.T) {
	t.Parallel()
	server, _ := withPhones(t, sip.Config{})
	c := callFrom(t, server, newPeer(t, "tcp", server))
	other := newPeer(t, "tcp", server)
	other.sendInDialog("BYE", c.dialog, 900, "", "")
	other.wantMessage("SIP/2.0 407")
	c.hangUp(t, 3)
}

func TestStray_TrunkIsRefused(t *testing.T) {
	t.Parallel()
	server, _ := withPhones(t, sip.Config{})
	for _, c := range []struct{ name, from, contact, want string }{
		{"elsewhere", "127.0.6.6", "127.0.9.1", "403"},
		{"another port", "127.0.9.1", "127.0.9.1", "200"},
		{"another address of the trunk", "127.0.9.2", "127.0.9.1", "200"},
		{"the address in Contact", "127.0.6.7", "127.0.6.7", "200"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPeerFrom(t, "udp", server, "127.0.9.1")
			p.send("INVITE sip:1@x SIP/2.0\nVia: SIP/2.0/UDP h;branch=z9hG4bK%s;rport\nMax-Forwards: 70\nFrom: <sip:9@x>;tag=1\nTo: <sip:1@x>\nCall-ID: %[1]s\nCSeq: 1 INVITE\nContact: <sip:9@%s>\nContent-Length: 0\n\n",
				strings.ReplaceAll(c.name, " ", ""), c.contact)
			call := &phoneCall{server: server, phone: p, in: server.wantInbound(t), events: newEventLog()}
			call.in.Listen(call.events.record)
			if call.in.TrunkID != "trunk-1" {
				t.Fatalf("the call came by trunk %q", call.in.TrunkID)
			}
			call.in.Answer(testAnswerSDP)
			ok := p.wantMessage("SIP/2.0 200")
			call.dialog = "From: <sip:9@x>;tag=1\nTo: " + headerValue(ok, "To") + "\nCall-ID: " + headerValue(ok, "Call-ID") + "\n"
			p.sendInDialog("ACK", call.dialog, 1, "Content-Type: application/sdp\n", string(testOfferSDP))
			wantEvent[sip.Acked](t, call.events)
			stranger := newPeerFrom(t, "udp", server, c.from)
			stranger.sendInDialog("INFO", call.dialog, 900, "", "")
			if s := strings.Fields(stranger.read())[1]; s != c.want {
				t.Errorf("got %s, want %s", s, c.want)
			}
			call.hangUp(t, 901)
		})
	}
}

// The answer to a late offer decides where our audio goes. It comes in an ACK, which has no response.
func TestStray_AnswerInACK(t *testing.T) {
	t.Parallel()
	server, _ := withPhones(t, sip.Config{})
	p, e := newPeerFrom(t, "udp", server, "127.0.9.1"), newEventLog()
	p.sendRequest("INVITE", "9", "late-1", 1, "")
	in := server.wantInbound(t)
	in.Listen(e.record)
	in.Answer(testOfferSDP)
	ok := p.wantMessage("SIP/2.0 200")
	dialog := "From: " + headerValue(ok, "From") + "\nTo: " + headerValue(ok, "To") + "\nCall-ID: late-1\n"
	forged := strings.ReplaceAll(string(testAnswerSDP), "7000", "6666")
	attacker := newPeerFrom(t, "udp", server, "127.0.6.6")
	attacker.sendInDialog("ACK", dialog, 1, "Content-Type: application/sdp\n", forged)
	attacker.sendInDialog("INFO", dialog, 900, "", "") // its refusal shows that the ACK was handled
	attacker.wantMessage("SIP/2.0 403")
	colleague := newPeerFrom(t, "udp", server, "127.0.9.2") // the trunk's second address
	colleague.sendInDialog("ACK", dialog, 1, "Content-Type: application/sdp\n", string(testAnswerSDP))
	if a := wantEvent[sip.Acked](t, e); string(a.SDP) != string(testAnswerSDP) {
		t.Errorf("the answer is\n%s", a.SDP)
	}
}

func TestCancel_OnlyFromTheCaller(t *testing.T) {
	t.Parallel()
	server, _ := withPhones(t, sip.Config{})
	p, e := newPeerFrom(t, "udp", server, "127.0.9.1"), newEventLog()
	const invite = "%s sip:1@x SIP/2.0\nVia: SIP/2.0/UDP h;branch=z9hG4bKonly;rport\nMax-Forwards: 70\nFrom: <sip:9@x>;tag=1\nTo: <sip:1@x>\nCall-ID: only\nCSeq: 1 %[1]s\nContact: <sip:9@127.0.9.1>\nContent-Length: 0\n\n"
	p.send(invite, "INVITE")
	in := server.wantInbound(t)
	in.Listen(e.record)
	in.Ring(180, nil)
	p.wantMessage("SIP/2.0 180")
	attacker := newPeerFrom(t, "udp", server, "127.0.6.6")
	attacker.send(invite, "CANCEL")
	attacker.wantMessage("SIP/2.0 481")
	wantNoEvent(t, e)
	p.send(invite, "CANCEL")
	p.wantMessage("SIP/2.0 ")
	wantEvent[sip.Canceled](t, e)
}

func TestStray_BehindAnEdge(t *testing.T) {
	t.Parallel()
	server, _ := withPhones(t, sip.Config{Edges: []netip.Prefix{netip.MustParsePrefix("127.0.8.0/24")}})
	edge := newPeerFrom(t, "udp", server, "127.0.8.1")
	challenge := headerValue(edge.throughEdge("INVITE", "alice", "198.51.100.8", "e1", 1, ""), "Proxy-Authenticate")
	for challenge == "" {
		challenge = headerValue(edge.read(), "Proxy-Authenticate")
	}
	edge.throughEdge("INVITE", "alice", "198.51.100.8", "e1", 2, "Proxy-Authorization: "+digestAuthorization(challenge, "alice", "secret", "INVITE", 1)+"\n")
	in, e := server.wantInbound(t), newEventLog()
	in.Listen(e.record)
	in.Answer(testAnswerSDP)
	ok := edge.read()
	for !strings.HasPrefix(ok, "SIP/2.0 200") {
		ok = edge.read()
	}
	request := func(method, client string, seq int) string {
		vias := "Via: SIP/2.0/UDP edge;branch=z9hG4bKd" + client + method + ";rport\n"
		if client != "" {
			vias += "Via: SIP/2.0/UDP 10.9.9.9:5060;branch=z9hG4bKc;rport=5062;received=" + client + "\n"
		}
		edge.send("%s sip:x SIP/2.0\n%sMax-Forwards: 70\nFrom: %s\nTo: %s\nCall-ID: e1\nCSeq: %d %[1]s\nContent-Length: 0\n\n", method, vias,
			headerValue(ok, "From"), headerValue(ok, "To"), seq)
		if method == "ACK" {
			return ""
		}
		return strings.Fields(edge.wantMessage("SIP/2.0 "))[1]
	}
	request("ACK", "198.51.100.8", 2)
	wantEvent[sip.Acked](t, e)
	for _, c := range []struct{ client, want string }{{"198.51.100.9", "407"}, {"198.51.100.8", "200"}, {"", "200"}} {
		if s := request("INFO", c.client, 10); s != c.want {
			t.Errorf("client %q: %s, want %s", c.client, s, c.want)
		}
	}
	wantNoEvent(t, e)
}

func TestStray_AfterRestart(t *testing.T) {
	t.Parallel()
	server, book := withPhones(t, sip.Config{})
	c := callFrom(t, server, newPeer(t, "udp", server))
	d := storedState(t, c.in.Leg())
	addr := server.Addr().String()
	server.Close()
	r := &restartedServer{states: []sip.DialogState{d}, eventLogs: []eventLog{newEventLog()},
		testServer: testServer{calls: make(chan *sip.Inbound, 1)}}
	s, err := sip.Listen(context.Background(), sip.Config{Addr: addr, Accounts: book, Bindings: book}, r)
	if err != nil || r.err != nil {
		t.Fatal(err, r.err)
	}
	t.Cleanup(func() { s.Close() })
	r.Server = s
	attacker := newPeerFrom(t, "udp", &r.testServer, "127.0.6.6")
	attacker.sendInDialog("BYE", c.dialog, 900, "", "")
	attacker.wantMessage("SIP/2.0 407")
	attacker.wantSilence(50 * time.Millisecond)
	c.phone.sendInDialog("BYE", c.dialog, 3, "", "")
	c.phone.wantMessage("SIP/2.0 200")
	wantEvent[sip.Bye](t, r.eventLogs[0])
}
