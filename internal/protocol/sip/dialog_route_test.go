package sip_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/digest"
	"soniq/internal/protocol/sip/resolve"
)

// headerValues returns all values of a header field, line by line.
func headerValues(m, name string) (all []string) {
	for _, l := range strings.Split(m, "\r\n") {
		if v, ok := strings.CutPrefix(l, name+": "); ok {
			all = append(all, v)
		}
	}
	return all
}

// TestDialog_RouteSetOfCallee proves that an answering side repeats Record-Route in its 200. Its BYE has the routes, loose or strict.
// https://github.com/eigger/hass-sip/issues/39
// https://github.com/emiago/sipgo/issues/97
func TestDialog_RouteSetOfCallee(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ record, uri, routes string }{
		{"Record-Route: <sip:PEER;lr;n=2>, <sip:PEER;lr;n=1>\n", "sip:al@PEER", "<sip:PEER;lr;n=2>|<sip:PEER;lr;n=1>"},
		{"Record-Route: <sip:PEER;n=2>\nRecord-Route: <sip:PEER;n=1>\n", "sip:PEER;n=2", "<sip:PEER;n=1>|<sip:al@PEER>"},
	} {
		server := newTestServer(t, sip.Config{})
		p, e := newPeer(t, "udp", server), newEventLog()
		at := strings.NewReplacer("PEER", p.conn.LocalAddr().String())
		p.sendRequest("INVITE", "al", "c1", 1, at.Replace(c.record))
		in := server.wantInbound(t)
		in.Listen(e.record)
		in.Answer(testOfferSDP)
		ok := p.wantMessage("SIP/2.0 200")
		if got := strings.Join(headerValues(ok, "Record-Route"), ", "); got != strings.Join(headerValues(at.Replace(
			strings.ReplaceAll(c.record, "\n", "\r\n")), "Record-Route"), ", ") {
			t.Errorf("Record-Route of the 200: %s", got)
		}
		p.sendInDialog("ACK", "From: "+headerValue(ok, "From")+"\nTo: "+headerValue(ok, "To")+"\nCall-ID: c1\n", 1, "", "")
		wantEvent[sip.Acked](t, e)
		in.Leg().Bye(sip.Reason{})
		bye := p.wantMessage("BYE ")
		if got := strings.Join(headerValues(bye, "Route"), "|"); strings.Fields(bye)[1] != at.Replace(c.uri) ||
			got != at.Replace(c.routes) {
			t.Errorf("BYE %s by %s", strings.Fields(bye)[1], got)
		}
	}
}

// TestSubscribe_RoutesOfNotify proves that a subscription keeps the routes of its first SUBSCRIBE, in their order, loose or strict.
// https://github.com/signalwire/freeswitch/issues/1656
func TestSubscribe_RoutesOfNotify(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ record, uri, routes string }{
		{"Record-Route: <sip:PEER;lr;n=2>\nRecord-Route: <sip:PEER;lr;n=1>\n", "sip:USER@PEER", "<sip:PEER;lr;n=2>|<sip:PEER;lr;n=1>"},
		{"Record-Route: <sip:PEER;n=2>, <sip:PEER;n=1>\n", "sip:PEER;n=2", "<sip:PEER;n=1>|<sip:USER@PEER>"},
	} {
		l := newFakeMailbox()
		server := newTestServer(t, sip.Config{Accounts: newFakeDirectory().addAccount("alice", "secret"),
			EventPackages: []sip.EventPackage{l}})
		w := &testSubscriber{peer: newPeer(t, "udp", server)}
		w.login = challengedSubscribe(w.peer, "w1")
		at := strings.NewReplacer("PEER", w.conn.LocalAddr().String())
		w.sendRequest("SUBSCRIBE", "alice", "w1", 2, summary+"Expires: 600\n"+w.login()+at.Replace(c.record))
		ok := w.wantMessage("SIP/2.0 200")
		record := strings.Join(headerValues(strings.ReplaceAll(at.Replace(c.record), "\n", "\r\n"), "Record-Route"), ", ")
		if got := strings.Join(headerValues(ok, "Record-Route"), ", "); got != record {
			t.Errorf("Record-Route of the 200: %s", got)
		}
		wantNotify := func(user, body string) {
			t.Helper()
			m, at := w.wantNotify("active", "id-alice "+body, 200), strings.NewReplacer("PEER", w.conn.LocalAddr().String(), "USER", user)
			got := strings.Join(headerValues(m, "Route"), "|")
			if strings.Fields(m)[1] != at.Replace(c.uri) || got != at.Replace(c.routes) {
				t.Errorf("NOTIFY %s by %s", strings.Fields(m)[1], got)
			}
		}
		wantNotify("alice", "off")
		l.state.Store("on")
		server.NotifySubscribers("message-summary", "id-alice")
		wantNotify("alice", "on")
		dialog := "From: " + headerValue(ok, "From") + "\nTo: " + headerValue(ok, "To") + "\nCall-ID: w1\n"
		w.sendInDialog("SUBSCRIBE", dialog, 3, summary+w.login(), "") // with another Contact and no Record-Route
		w.wantMessage("SIP/2.0 200")
		wantNotify("al", "on")
	}
}

// TestDialog_RouteOfEveryACK proves that every ACK of a dialog has its routes, that of a refused re-INVITE too:
// https://github.com/siphon-project/siphon-sip/pull/258
// https://github.com/OpenSIPS/opensips/issues/3561
// It also proves that a challenge on several lines is read:
// https://github.com/emiago/sipgo/issues/251
// https://github.com/DoubangoTelecom/doubango/issues/27
func TestDialog_RouteOfEveryACK(t *testing.T) {
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
	route := "<sip:" + p.conn.LocalAddr().String() + ";lr;n=1>"
	answer := "Contact: <sip:bob@far.example>\nRecord-Route: " + route + "\n"
	p.respond(p.wantMessage("INVITE "), 401, "x", "WWW-Authenticate: Digest realm=\"r\",\n   nonce=\"abc=\",\n\topaque=\"x\",\n   qop=\"auth\"\n")
	p.wantMessage("ACK ")
	inv := p.wantMessage("INVITE ")
	if !strings.Contains(headerValue(inv, "Authorization"), `nonce="abc="`) {
		t.Errorf("credentials %q", headerValue(inv, "Authorization"))
	}
	p.respond(inv, 200, "one", answer)
	acks := []string{p.wantMessage("ACK ")}
	wantEvent[sip.Answered](t, e)
	done := make(chan error, 1)
	go func() {
		_, err := leg.Reinvite(testContext(t), testOfferSDP)
		done <- err
	}()
	p.respond(p.wantMessage("INVITE "), 401, "", "WWW-Authenticate: Digest realm=\"r\", nonce=\"def\", qop=\"auth\"\n")
	acks = append(acks, p.wantMessage("ACK "))
	p.respond(p.wantMessage("INVITE "), 200, "", answer)
	acks = append(acks, p.wantMessage("ACK "))
	if err := <-done; err != nil {
		t.Error(err)
	}
	for i, m := range acks {
		if got := headerValues(m, "Route"); !slices.Equal(got, []string{route}) || strings.Fields(m)[1] != "sip:bob@far.example" {
			t.Errorf("ACK %d by %v:\n%s", i, got, m)
		}
	}
}

// https://github.com/eisenzopf/rvoip/issues/167: requests to a peer with an address of no host go where its own requests came from.
func TestDialog_ContactOfNoHost(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEventLog()
	p.send("INVITE sip:b@x SIP/2.0\nVia: SIP/2.0/UDP 0.0.0.0:5076;branch=z9hG4bKz1;rport\nMax-Forwards: 70\nFrom: <sip:a@x>;tag=f\n" +
		"To: <sip:b@x>\nCall-ID: z1\nCSeq: 1 INVITE\nContact: <sip:user@0.0.0.0:5076>\nContent-Length: 0\n\n")
	in := server.wantInbound(t)
	in.Listen(e.record)
	in.Answer(testOfferSDP)
	ok := p.wantMessage("SIP/2.0 200")
	p.sendInDialog("ACK", "From: "+headerValue(ok, "From")+"\nTo: "+headerValue(ok, "To")+"\nCall-ID: z1\n", 1, "", "")
	wantEvent[sip.Acked](t, e)
	in.Leg().Bye(sip.Reason{})
	p.wantMessage("BYE sip:user@0.0.0.0:5076")
}

// TestPRACK_OfForks proves that the PRACK of each fork has the Contact, the tag and the routes of that fork:
// https://github.com/pjsip/pjproject/issues/620
// https://github.com/pjsip/pjproject/issues/1364
// https://github.com/siphon-project/siphon-sip/pull/113
// https://github.com/siphon-project/siphon-sip/pull/119
// It also proves that a call that has ended acknowledges nothing more:
// https://github.com/siphon-project/siphon-sip/pull/386
func TestPRACK_OfForks(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEventLog()
	leg := callPeer(t, server, p, e)
	inv, at := p.wantMessage("INVITE "), p.conn.LocalAddr().String()
	provisional := func(fork, extra string) {
		p.respond(inv, 183, fork, "Contact: <sip:"+fork+"@"+at+">\nRequire: 100rel\n"+extra)
	}
	p.respond(inv, 180, "b", "Contact: <sip:b@"+at+">\n")
	provisional("c", "RSeq: 5\nRecord-Route: <sip:"+at+";lr;n=c>\n")
	first := p.wantMessage("PRACK sip:c@")
	if headerValue(first, "RAck") != "5 1 INVITE" || len(headerValues(first, "Route")) != 1 || !strings.HasSuffix(headerValue(first, "To"), "tag=c") {
		t.Errorf("got\n%s", first)
	}
	p.respond(first, 200, "", "")
	provisional("d", "RSeq: 900\n")
	second := p.wantMessage("PRACK sip:d@")
	if headerValue(second, "RAck") != "900 1 INVITE" || len(headerValues(second, "Route")) != 0 {
		t.Errorf("got\n%s", second)
	}
	p.respond(second, 200, "", "")
	leg.Cancel()
	p.respond(p.wantMessage("CANCEL "), 200, "", "")
	p.respond(inv, 487, "d", "")
	p.wantMessage("ACK ")
	provisional("d", "RSeq: 901\n")
	p.wantSilence(100 * time.Millisecond)
}
