package sip

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/sip/transport"
)

func TestSessionTimer_GrantedInAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ asked, expires, require string }{
		{"", "1800;refresher=uas", ""},
		{"Supported: timer\r\n", "1800;refresher=uac", "timer"},
		{"Supported: timer\r\nSession-Expires: 600\r\n", "600;refresher=uac", "timer"},
		{"k: timer\r\nx: 600;refresher=uas\r\n", "600;refresher=uas", "timer"},
		{"Supported: timer\r\nSession-Expires: 7200;refresher=uac\r\n", "1800;refresher=uac", "timer"},
		{"Supported: timer\r\nSession-Expires: 7200\r\nMin-SE: 3600\r\n", "3600;refresher=uac", "timer"},
		{"Require: timer\r\nSession-Expires: 90\r\n", "90;refresher=uac", "timer"},
		{"Session-Expires: 30\r\n", "90;refresher=uas", ""}, // added by a proxy
		{"Supported: timer\r\nSession-Expires: nonsense\r\n", "1800;refresher=uac", "timer"},
	} {
		l := newTestShard(t)
		l.answeredInbound(t, c.asked)
		ok := l.sent[1]
		if got := headerOfMessage(ok, "Session-Expires"); got != c.expires || headerOfMessage(ok, "Require") != c.require {
			t.Errorf("%q: %q, Require %q; want %q, %q", c.asked, got, headerOfMessage(ok, "Require"), c.expires, c.require)
		}
	}
}

func TestSessionTimer_TooShortGets422(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	l.receiveRequest("INVITE", "i1", "", 1, "Supported: timer\r\nSession-Expires: 89\r\n", "v=0\r\n")
	if sent := l.drainSent(); len(sent) != 1 || !strings.HasPrefix(sent[0], "SIP/2.0 422") || headerOfMessage(sent[0], "Min-SE") != "90" {
		t.Fatalf("sent %v", sent)
	}
	l.receiveRequest("ACK", "i1", "x", 1, "", "")
	l.receiveRequest("INVITE", "i2", "", 2, "Supported: timer\r\nSession-Expires: 90\r\n", "v=0\r\n")
	(<-l.calls).Answer([]byte("v=0\r\n"))
	l.work()
	tag := l.localTag()
	l.receiveRequest("ACK", "a2", tag, 2, "", "")
	l.drainSent()
	for _, method := range []string{"UPDATE", "INVITE"} {
		l.receiveRequest(method, method, tag, 3, "Supported: timer\r\nSession-Expires: 30\r\n", "")
		if sent := l.drainSent(); !strings.HasPrefix(sent[0], "SIP/2.0 422") {
			t.Errorf("%s: sent %v", method, sent)
		}
	}
}

// A refresh from an address that is not the peer's is refused. It may have been the peer's all the same, so the peer is
// asked before the call ends.
func TestSessionTimer_RefusedStrayAsksThePeer(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	leg, tag, got := l.answeredInbound(t, "Allow: UPDATE\r\nSupported: timer\r\nSession-Expires: 300;refresher=uac\r\n")
	leg.account = "al"
	l.drainSent()
	l.advance(200 * time.Second)
	stray := transport.Flow{Addr: netip.MustParseAddrPort("192.0.2.2:5060")}
	l.handleMessage(request("UPDATE", "stray", tag, 2), stray)
	l.srv.workers.Wait()
	l.work()
	if m := l.sentMethods(); !slices.Equal(m, []string{"407"}) {
		t.Fatalf("the stray refresh is answered %v", m)
	}
	l.drainSent()
	l.advance(69 * time.Second)
	sent := l.drainSent()
	if len(sent) == 0 || !strings.HasPrefix(sent[0], "UPDATE ") {
		t.Fatalf("sent %v, want a refresh", sent)
	}
	l.receiveResponse(sent[0], 200, "", "", "")
	l.advance(100 * time.Second)
	if _, lost := (*got)[len(*got)-1].(Lost); lost || leg.state != legConfirmed {
		t.Errorf("the call ended: %v", *got)
	}
}

// RFC 4028 §10: the refresher refreshes at half the interval.
func TestSessionTimer_RefreshAtHalfInterval(t *testing.T) {
	t.Parallel()
	for allow, method := range map[string]string{"Allow: INVITE, UPDATE\r\n": "UPDATE", "Allow: INVITE\r\n": "INVITE", "": "INVITE"} {
		l := newTestShard(t)
		l.answeredInbound(t, allow+"Supported: timer\r\nSession-Expires: 1000;refresher=uas\r\n")
		l.drainSent()
		for range 3 {
			l.advance(499 * time.Second)
			if len(l.sent) > 0 {
				t.Fatalf("sent early: %v", l.sentMethods())
			}
			l.advance(time.Second)
			sent := l.drainSent()
			if len(sent) != 1 || !strings.HasPrefix(sent[0], method) ||
				headerOfMessage(sent[0], "Session-Expires") != "1000;refresher=uac" {
				t.Fatalf("refreshed by %v", sent)
			}
			if hasOurs := strings.Contains(sent[0], "o=ours 1 1"); hasOurs != (method == "INVITE") {
				t.Errorf("the refresh is:\n%s", sent[0])
			}
			l.receiveResponse(sent[0], 200, "", "Session-Expires: 1000;refresher=uac\r\n", "")
			if m := l.sentMethods(); method == "INVITE" && !slices.Equal(m, []string{"ACK"}) {
				t.Errorf("after the answer: %v", m)
			}
			l.drainSent()
		}
	}
}

func TestSessionTimer_SilentPeerIsLost(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	_, _, got := l.answeredInbound(t, "Allow: UPDATE\r\n") // does not support session timers
	l.advance(900*time.Second + 33*time.Second)
	if m := l.sentMethods(); !slices.Contains(m, "BYE") {
		t.Fatalf("no BYE: %v", m)
	}
	last := (*got)[len(*got)-1]
	if lost, ok := last.(Lost); !ok || !strings.HasPrefix(lost.Why, "session expired") {
		t.Errorf("last event %#v", last)
	}
	l.advance(time.Hour)
	if len(l.legs) != 0 || len(l.timers) != 0 {
		t.Errorf("left behind: %d legs, %d timers", len(l.legs), len(l.timers))
	}
}

func TestSessionTimer_MissingRefreshHangsUp(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	_, tag, got := l.answeredInbound(t, "Supported: timer\r\nSession-Expires: 300;refresher=uac\r\n")
	for i, method := range []string{"UPDATE", "INVITE", "UPDATE"} {
		l.advance(260 * time.Second)
		body := ""
		if method == "INVITE" {
			body = "v=0\r\n"
		}
		l.receiveRequest(method, fmt.Sprint("r", i), tag, 10+i, "Supported: timer\r\nSession-Expires: 300;refresher=uac\r\n", body)
		if re, ok := (*got)[len(*got)-1].(Reinvite); ok && method == "INVITE" {
			re.Respond(200, []byte("v=0\r\n"))
			l.work()
			l.receiveRequest("ACK", "ra", tag, 10+i, "", "")
		}
		ok := l.sent[len(l.sent)-1]
		if !strings.HasPrefix(ok, "SIP/2.0 200") || headerOfMessage(ok, "Session-Expires") != "300;refresher=uac" {
			t.Fatalf("%s is answered:\n%s", method, ok)
		}
	}
	l.drainSent()
	l.advance(267 * time.Second)
	if len(l.sent) > 0 {
		t.Fatalf("sent too early: %v", l.sentMethods())
	}
	l.advance(2 * time.Second)
	if m := l.sentMethods(); !slices.Equal(m, []string{"BYE", "BYE"}) { // repeated once
		t.Errorf("sent %v, want BYE", m)
	}
	if lost, ok := (*got)[len(*got)-1].(Lost); !ok || lost.Why != "session expired" {
		t.Errorf("last event %#v", (*got)[len(*got)-1])
	}
}

func TestSessionTimer_RequestedInOutgoingCalls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		granted string
		after   time.Duration // until a message is sent
		what    string
	}{
		{"", 900 * time.Second, "UPDATE"},
		{"Session-Expires: 600;refresher=uac\r\nRequire: timer\r\n", 300 * time.Second, "UPDATE"},
		{"Session-Expires: 600;refresher=uas\r\n", 568 * time.Second, "BYE"},
	} {
		l := newTestShard(t)
		_, invite, _ := l.placeOutgoing(t)
		if headerOfMessage(invite, "Session-Expires") != "1800" || !strings.Contains(headerOfMessage(invite, "Supported"), "timer") {
			t.Fatalf("INVITE is:\n%s", invite)
		}
		l.receiveResponse(invite, 200, "b", "Allow: INVITE, UPDATE\r\n"+c.granted, "v=0\r\n")
		l.drainSent()
		l.advance(c.after - time.Second)
		if len(l.sent) > 0 {
			t.Fatalf("%q: too early: %v", c.granted, l.sentMethods())
		}
		l.advance(time.Second)
		if m := l.sentMethods(); !slices.Equal(m, []string{c.what}) {
			t.Errorf("%q: sent %v, want %s", c.granted, m, c.what)
		}
	}
}

func TestSessionTimer_422RaisesInterval(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	_, invite, got := l.placeOutgoing(t)
	for _, least := range []string{"3600", "4000", "5000"} {
		l.receiveResponse(invite, 422, "b", "Min-SE: "+least+"\r\n", "")
		sent := l.drainSent() // the ACK and the retry
		if len(sent) != 2 || headerOfMessage(sent[1], "Session-Expires") != least || headerOfMessage(sent[1], "Min-SE") != least {
			t.Fatalf("sent %v", sent)
		}
		invite = sent[1]
	}
	l.receiveResponse(invite, 422, "b", "Min-SE: 6000\r\n", "") // beyond the limit of retries
	if f, ok := (*got)[0].(Failed); !ok || f.Status != 422 {
		t.Errorf("got %#v", *got)
	}
}

func TestSessionTimer_RefusedRefreshKeepsCall(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	_, _, got := l.answeredInbound(t, "Allow: UPDATE\r\n")
	l.drainSent()
	l.advance(900 * time.Second)
	l.receiveResponse(l.drainSent()[0], 501, "", "", "")
	l.advance(0)
	sent := l.drainSent()
	if len(sent) != 1 || !strings.HasPrefix(sent[0], "INVITE") {
		t.Fatalf("after 501: %v", sent)
	}
	l.receiveResponse(sent[0], 488, "", "", "")
	l.drainSent()
	l.advance(901 * time.Second)
	if m := l.sentMethods(); !slices.Contains(m, "INVITE") {
		t.Errorf("sent %v, want another refresh", m)
	}
	if len(*got) != 1 { // Acked
		t.Errorf("events %#v", *got)
	}
}

func TestSessionTimer_OfferDuringRefreshWaits(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	leg, _, _ := l.answeredInbound(t, "")
	l.advance(900 * time.Second)
	var got error
	leg.sendReinvite([]byte("v=0\r\n"), func(_ *received, err error) { got = err })
	var status *StatusError
	if !errors.As(got, &status) || status.Status != 491 {
		t.Errorf("got %v, want 491: try again", got)
	}
}

func TestSessionTimer_CanBeDisabled(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	l.srv.config.SessionExpires = -1
	l.answeredInbound(t, "")
	if e := headerOfMessage(l.sent[1], "Session-Expires"); e != "" {
		t.Errorf("given %q", e)
	}
	l.drainSent()
	l.advance(5 * time.Hour)
	if len(l.sent) > 0 {
		t.Errorf("sent %v", l.sentMethods())
	}
}

// RFC 3262 §3: without a PRACK the call is refused after 64*T1.
func TestReliableProvisional_WithoutPRACKGets504(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	l.receiveRequest("INVITE", "i1", "", 1, "Supported: 100rel\r\n", "v=0\r\n")
	in := <-l.calls
	var got []Event
	in.Listen(func(e Event) { got = append(got, e) })
	in.Ring(183, []byte("v=0\r\n"))
	in.Answer([]byte("v=0\r\n"))
	l.work()
	l.advance(31 * time.Second)
	if m := l.sentMethods(); !slices.Equal(m, []string{"100", "183", "183", "183", "183", "183", "183"}) { // 0 .5 1.5 3.5 7.5 15.5
		t.Fatalf("sent %v", m)
	}
	l.drainSent()
	l.advance(time.Second)
	if m := l.sentMethods(); !slices.Contains(m, "504") {
		t.Errorf("sent %v, want 504", m)
	}
	if _, ok := got[0].(Lost); !ok || len(got) != 1 {
		t.Errorf("events %#v", got)
	}
}

func TestLateOffer_NotInProvisionalResponses(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	l.receiveRequest("INVITE", "i1", "", 1, "Supported: 100rel\r\n", "")
	(<-l.calls).Ring(183, []byte("v=0\r\n"))
	l.work()
	if strings.Contains(l.sent[1], "v=0") || headerOfMessage(l.sent[1], "RSeq") != "" {
		t.Errorf("sent:\n%s", l.sent[1])
	}
	_, err := l.srv.Invite(context.Background(), Outgoing{URI: "sip:b@192.0.2.1"}, func(Event) {})
	l.work()
	if inv := l.sent[len(l.sent)-1]; err != nil || strings.Contains(inv, "100rel") {
		t.Errorf("%v, sent:\n%s", err, inv)
	}
}

// A restored dialog's session timer runs from its start.
func TestRestore_SessionTimerRuns(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	leg, _, _ := l.answeredInbound(t, "Allow: UPDATE\r\nSupported: timer\r\nSession-Expires: 300;refresher=uas\r\n")
	d := leg.snapshot()
	if d.Session != 300 || !d.Refresher || !d.Updates || !strings.Contains(string(d.SDP), "o=ours") {
		t.Fatalf("state %+v", d)
	}
	next := newTestShard(t)
	if _, err := next.srv.Restore(d, func(Event) {}); err != nil {
		t.Fatal(err)
	}
	next.work()
	next.advance(149 * time.Second)
	if len(next.sent) > 0 {
		t.Fatalf("sent early: %v", next.sentMethods())
	}
	next.advance(time.Second)
	if m := next.sentMethods(); !slices.Equal(m, []string{"UPDATE"}) {
		t.Errorf("sent %v, want UPDATE", m)
	}
}

// SDP that changed in the answer to a refresh is reported, once.
func TestSessionTimer_ChangedSDPIsReported(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	_, _, got := l.answeredInbound(t, "")
	for _, c := range []struct {
		body string
		told bool
	}{{"v=0\r\n", false}, {"v=0\r\nmoved", true}, {"v=0\r\nmoved", false}, {"", false}} {
		*got = nil
		l.drainSent()
		l.advance(900 * time.Second)
		l.receiveResponse(l.drainSent()[0], 200, "", "", c.body)
		if told := len(*got) == 1; told != c.told || told && string((*got)[0].(Refreshed).SDP) != c.body {
			t.Errorf("%q: events %#v", c.body, *got)
		}
	}
}

func TestSnapshot_HoldsNoMediaKeys(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	leg, _, _ := l.answeredInbound(t, "")
	for sdp, kept := range map[string]bool{"v=0\r\n": true, "a=crypto:1 X inline:key\r\n": false, "a=ice-pwd:secret\r\n": false} {
		leg.localSDP = []byte(sdp)
		if got := leg.snapshot().SDP != nil; got != kept {
			t.Errorf("%q is kept: %v, want %v", sdp, got, kept)
		}
	}
}

// RFC 3261 §13.3.1.1: the provisional response of a long-ringing call is repeated every minute.
func TestRing_RepeatedEveryMinute(t *testing.T) {
	t.Parallel()
	for fields, again := range map[string]string{"": "", "Require: 100rel\r\n": "100rel"} {
		l := newTestShard(t)
		l.receiveRequest("INVITE", "i1", "", 1, fields, "v=0\r\n")
		in := <-l.calls
		in.Ring(183, []byte("v=0\r\n"))
		l.work()
		if again != "" {
			l.receiveRequest("PRACK", "p1", l.localTag(), 2, "RAck: "+headerOfMessage(l.sent[1], "RSeq")+" 1 INVITE\r\n", "")
		}
		l.drainSent()
		l.advance(59 * time.Second)
		if len(l.sent) > 0 {
			t.Fatalf("sent early: %v", l.sentMethods())
		}
		l.advance(time.Second)
		if m := l.sentMethods(); !slices.Equal(m, []string{"183"}) || strings.Contains(l.sent[0], "v=0") || headerOfMessage(l.sent[0], "Require") != again {
			t.Errorf("%q: sent %v\n%s", fields, m, l.sent)
		}
		in.Answer([]byte("v=0\r\n"))
		l.work()
	}
}
