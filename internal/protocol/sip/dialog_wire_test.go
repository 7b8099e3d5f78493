package sip_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/digest"
	"soniq/internal/protocol/sip/resolve"
	"soniq/internal/protocol/sip/sipmsg"
)

// callPeer places a call to a hand-driven UDP peer.
func callPeer(t *testing.T, server *testServer, p *peer, on eventLog) *sip.Leg {
	t.Helper()
	leg, err := server.Server.Invite(context.Background(), sip.Outgoing{
		URI: "sip:bob@example.com", NextHop: resolve.Target{Host: p.conn.LocalAddr().String()}, SDP: testOfferSDP,
	}, on.record)
	if err != nil {
		t.Fatal(err)
	}
	return leg
}

func (p *peer) contact() string {
	return "Contact: <sip:bob@" + p.conn.LocalAddr().String() + ">\n"
}

func TestAnswer_Repeated2xxAcknowledged(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEventLog()
	callPeer(t, server, p, e)
	inv := p.wantMessage("INVITE ")
	p.respond(inv, 200, "one", p.contact())
	first := p.wantMessage("ACK ")
	p.respond(inv, 200, "one", p.contact())
	if again := p.wantMessage("ACK "); again != first {
		t.Errorf("the ACK changed:\n%s\n%s", first, again)
	}
	wantEvent[sip.Answered](t, e)
	wantNoEvent(t, e)
}

func TestFork_OtherAnswersHungUp(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEventLog()
	leg := callPeer(t, server, p, e)
	inv := p.wantMessage("INVITE ")
	p.respond(inv, 180, "one", "")
	p.respond(inv, 180, "two", "")
	if a, b := wantEvent[sip.Provisional](t, e), wantEvent[sip.Provisional](t, e); a.Tag != "one" || b.Tag != "two" {
		t.Errorf("forks ring as %q and %q", a.Tag, b.Tag)
	}
	p.respond(inv, 200, "one", p.contact())
	p.respond(inv, 200, "two", p.contact())
	var got []string
	for range 3 {
		m := p.read()
		method, _, _ := strings.Cut(m, " ")
		got = append(got, method+" "+headerValue(m, "To")[strings.Index(headerValue(m, "To"), "tag="):])
		if method == "BYE" {
			p.respond(m, 200, "", "")
		}
	}
	if s := strings.Join(got, ", "); s != "ACK tag=one, ACK tag=two, BYE tag=two" {
		t.Errorf("sent %s", s)
	}
	wantEvent[sip.Answered](t, e)
	leg.Bye(sip.Reason{})
	if bye := p.wantMessage("BYE "); !strings.Contains(headerValue(bye, "To"), "tag=one") {
		t.Errorf("the call's BYE goes to %s", headerValue(bye, "To"))
	}
}

// TestCancel_CrossingAnswerHungUp proves that an answer that crosses the CANCEL is acknowledged and ended, both by its routes.
// https://github.com/siphon-project/siphon-sip/pull/258
func TestCancel_CrossingAnswerHungUp(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEventLog()
	leg := callPeer(t, server, p, e)
	inv := p.wantMessage("INVITE ")
	leg.Cancel()
	wantEvent[sip.Failed](t, e)
	p.wantSilence(100 * time.Millisecond)
	p.respond(inv, 180, "one", "") // only now may the CANCEL leave
	cancel := p.wantMessage("CANCEL ")
	if headerValue(cancel, "Via") != headerValue(inv, "Via") {
		t.Errorf("CANCEL has another Via: %s, %s", headerValue(cancel, "Via"), headerValue(inv, "Via"))
	}
	route := "<sip:" + p.conn.LocalAddr().String() + ";lr;n=1>"
	p.respond(inv, 200, "one", "Contact: <sip:bob@far.example>\nRecord-Route: "+route+"\n")
	for _, method := range []string{"ACK ", "BYE "} {
		if m := p.wantMessage(method + "sip:bob@far.example "); !slices.Equal(headerValues(m, "Route"), []string{route}) {
			t.Errorf("without its route:\n%s", m)
		}
	}
	wantNoEvent(t, e)
}

// TestDialog_RouteSet proves that the requests of a calling side go to the Contact of the 200 by its routes, loose or strict.
// https://github.com/restsend/rustpbx/issues/122
func TestDialog_RouteSet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, record, uri, routes string }{
		{"loose", "Record-Route: <sip:PEER;lr;n=2>, <sip:PEER;lr;n=1>\n", "sip:bob@far.example", "<sip:PEER;lr;n=1>|<sip:PEER;lr;n=2>"},
		{"strict", "Record-Route: <sip:PEER;n=2>\nRecord-Route: <sip:PEER;n=1>\n", "sip:PEER;n=1", "<sip:PEER;n=2>|<sip:bob@far.example>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := newTestServer(t, sip.Config{})
			p, e := newPeer(t, "udp", server), newEventLog()
			at := strings.NewReplacer("PEER", p.conn.LocalAddr().String())
			leg := callPeer(t, server, p, e)
			inv := p.wantMessage("INVITE ")
			p.respond(inv, 200, "one", "Contact: <sip:bob@far.example>\n"+at.Replace(c.record))
			ack := p.wantMessage("ACK ")
			leg.Bye(sip.Reason{})
			bye := p.wantMessage("BYE ")
			for _, m := range []string{ack, bye} {
				uri := strings.Fields(m)[1]
				var routes []string
				for _, l := range strings.Split(m, "\r\n") {
					if v, ok := strings.CutPrefix(l, "Route: "); ok {
						routes = append(routes, v)
					}
				}
				if uri != at.Replace(c.uri) || strings.Join(routes, "|") != at.Replace(c.routes) {
					t.Errorf("got %s via %v, want %s via %s", uri, routes, at.Replace(c.uri), at.Replace(c.routes))
				}
			}
		})
	}
}

func TestBye_ChallengeAnswered(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEventLog()
	leg, err := server.Server.Invite(context.Background(), sip.Outgoing{
		URI: "sip:bob@example.com", NextHop: resolve.Target{Host: p.conn.LocalAddr().String()}, SDP: testOfferSDP,
		Credentials: digest.Credentials{Username: "u", Password: "p"},
	}, e.record)
	if err != nil {
		t.Fatal(err)
	}
	inv := p.wantMessage("INVITE ")
	p.respond(inv, 401, "x", "WWW-Authenticate: Digest realm=\"r\", nonce=\"n1\", algorithm=SHA-512-256, qop=\"auth\"\n"+
		"WWW-Authenticate: Digest realm=\"r\", nonce=\"n2\", qop=\"auth-int,auth\"\n"+
		"WWW-Authenticate: Digest realm=\"r\", nonce=\"n3\", algorithm=SHA-256, qop=\"auth\"\n")
	p.wantMessage("ACK ")
	again := p.wantMessage("INVITE ")
	if a := headerValue(again, "Authorization"); !strings.Contains(a, `nonce="n3"`) {
		t.Errorf("the strongest usable challenge is not answered: %s", a)
	}
	if headerValue(again, "CSeq") != "2 INVITE" {
		t.Errorf("CSeq is %s", headerValue(again, "CSeq"))
	}
	p.respond(again, 200, "one", p.contact())
	p.wantMessage("ACK ")
	wantEvent[sip.Answered](t, e)
	leg.Bye(sip.Reason{})
	bye := p.wantMessage("BYE ")
	p.respond(bye, 407, "", "Proxy-Authenticate: Digest realm=\"r\", nonce=\"n4\"\n")
	if bye = p.wantMessage("BYE "); headerValue(bye, "Proxy-Authorization") == "" {
		t.Error("the second BYE has no credentials")
	}
	p.respond(bye, 200, "", "")
	wantEvent[sip.Closed](t, e)
}

func TestTCP_PhonesGetOwnCalls(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory()
	server := newTestServer(t, sip.Config{Accounts: book, Bindings: book})
	const phones = 8
	var peers [phones]*peer
	for i := range peers {
		user := fmt.Sprint("u", i)
		book.addAccount(user, "pw")
		p := newPeer(t, "tcp", server)
		p.sendRequest("REGISTER", user, "reg-"+user, 1, "")
		challenge := headerValue(p.wantMessage("SIP/2.0 401"), "WWW-Authenticate")
		p.sendRequest("REGISTER", user, "reg-"+user, 2, "Authorization: "+digestAuthorization(challenge, user, "pw", "REGISTER", 1)+"\n")
		p.wantMessage("SIP/2.0 200")
		peers[i] = p
	}
	for i := range peers {
		all, _ := book.Load(context.Background(), fmt.Sprint("id-u", i))
		server.Server.Invite(context.Background(), sip.Outgoing{Binding: &all[0], SDP: testOfferSDP}, func(sip.Event) {})
	}
	for i, p := range peers {
		if m := p.wantMessage("INVITE "); !strings.HasPrefix(m, fmt.Sprintf("INVITE sip:u%d@", i)) {
			t.Errorf("phone %d got %s", i, strings.SplitN(m, "\r\n", 2)[0])
		}
	}

	// A phone with a closed connection is not reachable over any other connection.
	all, _ := book.Load(context.Background(), "id-u0")
	local := peers[0].conn.LocalAddr()
	peers[0].conn.(*net.TCPConn).SetLinger(0)
	peers[0].conn.Close()
	waitUntil(t, "the connection gone", func() bool { return !server.Reachable(all[0]) })
	stranger, err := (&net.Dialer{LocalAddr: local}).Dial("tcp", server.Addr().String()) // the same port again
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	waitUntil(t, "the stranger connected", func() bool { return server.Stats().Connections == phones })
	e := newEventLog()
	server.Server.Invite(context.Background(), sip.Outgoing{Binding: &all[0], SDP: testOfferSDP}, e.record)
	if f := wantEvent[sip.Failed](t, e); f.Status != 430 {
		t.Errorf("got %+v, want 430 Flow Failed", f)
	}
	(&peer{t: t, conn: stranger, tcp: true}).wantSilence(50 * time.Millisecond)
}

// TestTCP_Framing proves that pings get pongs, and that each of several messages is answered: in many segments, and in one behind a CRLF.
// https://github.com/haumacher/phoneblock/pull/443
// https://github.com/NormB/sipnab/pull/95
func TestTCP_Framing(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	p := newPeer(t, "tcp", server)
	for range 3 {
		p.conn.Write([]byte("\r\n\r\n"))
		buf := make([]byte, 10)
		if n, _ := p.conn.Read(buf); string(buf[:n]) != "\r\n" { // RFC 5626 §3.5.1
			t.Errorf("ping is answered %q", buf[:n])
		}
	}
	msg := "OPTIONS sip:x@y SIP/2.0\r\nVia: SIP/2.0/TCP h;branch=z9hG4bKs%d\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:x@y>\r\nCall-ID: s\r\nCSeq: %d OPTIONS\r\nMax-Forwards: 9\r\nContent-Length: 5\r\n\r\nhello"
	var all strings.Builder
	for i := range 3 {
		fmt.Fprintf(&all, msg, i, i+1)
	}
	for _, b := range []byte(all.String()) { // three messages, a byte at a time
		p.conn.Write([]byte{b})
	}
	all.Reset()
	for i := 3; i < 6; i++ {
		fmt.Fprintf(&all, msg, i, i+1)
	}
	p.conn.Write([]byte("\r\n" + all.String())) // one CRLF and three messages in one segment
	for i := range 6 {
		if m := p.wantMessage("SIP/2.0 200"); headerValue(m, "CSeq") != fmt.Sprint(i+1, " OPTIONS") {
			t.Errorf("answer %d is to %s", i, headerValue(m, "CSeq"))
		}
	}
}

func TestTCP_OversizedMessageClosesConnection(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{Limits: sip.Limits{MessageBytes: 4096}})
	for _, text := range []string{
		"OPTIONS sip:x@y SIP/2.0\r\nVia: SIP/2.0/TCP h;branch=z9hG4bKo1\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:x@y>\r\nCall-ID: o\r\nCSeq: 1 OPTIONS\r\nContent-Length: 999999999\r\n\r\n",
		"OPTIONS " + strings.Repeat("x", 8192),
	} {
		p := newPeer(t, "tcp", server)
		p.conn.Write([]byte(text))
		p.conn.SetReadDeadline(time.Now().Add(testTimeout))
		buf := make([]byte, 4096)
		for {
			if _, err := p.conn.Read(buf); err != nil {
				if strings.Contains(err.Error(), "timeout") {
					t.Error("the connection stays open")
				}
				break
			}
		}
	}
}

func TestVia_ResponseDestination(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	a, b := newPeer(t, "udp", server), newPeer(t, "udp", server)
	port := netip.MustParseAddrPort(b.conn.LocalAddr().String()).Port()
	ask := func(id, param string) {
		a.send("OPTIONS sip:y SIP/2.0\nVia: SIP/2.0/UDP 10.1.1.1:%d;branch=z9hG4bK%s%s\nFrom: <sip:a@b>;tag=1\nTo: <sip:x@y>\nCall-ID: %s\nCSeq: 1 OPTIONS\nMax-Forwards: 70\nContent-Length: 0\n\n", port, id, param, id)
	}
	ask("w1", ";rport") // RFC 3581: back to the source port
	own := fmt.Sprintf(";received=127.0.0.1;rport=%d", netip.MustParseAddrPort(a.conn.LocalAddr().String()).Port())
	if v := headerValue(a.wantMessage("SIP/2.0 200"), "Via"); !strings.HasSuffix(v, own) {
		t.Errorf("Via is %s, want %s", v, own)
	}
	ask("w2", "") // RFC 3261 §18.2.2: to the sent-by port
	b.wantMessage("SIP/2.0 200")
}

func TestAdmission_CallLimitRefusesNewCallsOnly(t *testing.T) {
	t.Parallel()
	pa := newTestServer(t, sip.Config{})
	pb := newTestServer(t, sip.Config{Limits: sip.Limits{Calls: 1, RetryAfter: 9 * time.Second}})
	caller, callee, a, b := answeredCall(t, pa, pb, sipmsg.UDP)
	second := newEventLog()
	placeCall(t, pa, pb, sipmsg.UDP, testOfferSDP, second)
	if f := wantEvent[sip.Failed](t, second); f.Status != 503 || f.RetryAfter != 9 {
		t.Errorf("got %+v, want 503 and Retry-After 9", f)
	}
	go func() { (<-b).(sip.Reinvite).Respond(200, testAnswerSDP) }()
	if _, err := caller.Reinvite(context.Background(), testOfferSDP); err != nil {
		t.Errorf("traffic in the dialog: %v", err)
	}
	callee.Bye(sip.Reason{})
	wantEvent[sip.Bye](t, a)
	wantEvent[sip.Closed](t, b)
	third := newEventLog()
	placeCall(t, pa, pb, sipmsg.UDP, testOfferSDP, third)
	pb.wantInbound(t).Reject(486, "", 0) // there is room again
	wantEvent[sip.Failed](t, third)
	if n := pb.Stats().Rejected; n != 1 {
		t.Errorf("%d refusals counted, want 1", n)
	}
}

func TestAdmission_InviteRateLimit(t *testing.T) {
	t.Parallel()
	pa := newTestServer(t, sip.Config{})
	pb := newTestServer(t, sip.Config{Limits: sip.Limits{InvitesPerSecond: 10}})
	go func() {
		for in := range pb.calls {
			in.Reject(486, "", 0)
		}
	}()
	statuses := map[int]int{}
	e := newEventLog()
	for range 100 {
		placeCall(t, pa, pb, sipmsg.UDP, testOfferSDP, e)
	}
	for range 100 {
		statuses[wantEvent[sip.Failed](t, e).Status]++
	}
	if statuses[503] < 80 || statuses[486] < 10 {
		t.Errorf("got %v, want a second's worth of 10 and the rest 503", statuses)
	}
}

func TestUDP_LargeDatagram(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	p := newPeer(t, "udp", server)
	p.sendRequest("INVITE", "x", "large", 1, "X-Padding: "+strings.Repeat("p", 30000)+"\n")
	in := server.wantInbound(t)
	if n := len(in.Header("X-Padding")); n != 30000 {
		t.Errorf("%d bytes of 30000 arrived", n)
	}
	in.Reject(486, "", 0)
}
