package sip

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// drainSent returns the messages sent since the last call.
func (l *lab) takeSent() []string {
	sent := l.sent
	l.sent = nil
	return sent
}

func fieldOf(raw, name string) string {
	for _, line := range strings.Split(raw, "\r\n") {
		if n, v, ok := strings.Cut(line, ": "); ok && n == name {
			return v
		}
	}
	return ""
}

// receiveResponse receives a response to our request.
func (l *lab) reply(request string, status int, tag, extra, body string) {
	to := fieldOf(request, "To")
	if tag != "" && !strings.Contains(to, "tag=") {
		to += ";tag=" + tag
	}
	if body != "" {
		extra += "Content-Type: application/sdp\r\n"
	}
	l.message(fmt.Sprintf("SIP/2.0 %d x\r\nVia: %s\r\nFrom: %s\r\nTo: %s\r\nCall-ID: %s\r\nCSeq: %s\r\nContact: <sip:bob@192.0.2.1>\r\n%sContent-Length: %d\r\n\r\n%s",
		status, fieldOf(request, "Via"), fieldOf(request, "From"), to, fieldOf(request, "Call-ID"), fieldOf(request, "CSeq"), extra, len(body), body), udpPeer)
}

// receiveRequest receives a request of the peer with additional fields and a body.
func (l *lab) ask(method, branch, toTag string, seq int, extra, body string) {
	m := request(method, branch, toTag, seq)
	if body != "" {
		extra += "Content-Type: application/sdp\r\n"
	}
	m = strings.Replace(m, "Content-Length: 0\r\n\r\n", fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", extra, len(body), body), 1)
	l.message(m, udpPeer)
}

// answeredInbound returns an answered call of the peer.
func (l *lab) inbound(t *testing.T, extra string) (leg *Leg, tag string, got *[]Event) {
	t.Helper()
	l.ask("INVITE", "i1", "", 1, extra, "v=0\r\n")
	in := <-l.calls
	got = new([]Event)
	in.Listen(func(e Event) { *got = append(*got, e) })
	in.Answer([]byte("v=0\r\no=ours 1 1\r\n"))
	l.work()
	tag = l.localTag()
	l.ask("ACK", "a1", tag, 1, "", "")
	return in.Leg(), tag, got
}

// placeOutgoing places a call and returns its INVITE.
func (l *lab) outbound(t *testing.T) (leg *Leg, invite string, got *[]Event) {
	t.Helper()
	got = new([]Event)
	leg, err := l.srv.Invite(context.Background(), Outgoing{URI: "sip:bob@192.0.2.1", SDP: []byte("v=0\r\no=ours 1 1\r\n")}, func(e Event) { *got = append(*got, e) })
	if err != nil {
		t.Fatal(err)
	}
	l.work()
	return leg, l.takeSent()[0], got
}

func TestAnswerGivesASessionTimer(t *testing.T) {
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
		l := newLab(t)
		l.inbound(t, c.asked)
		ok := l.sent[1]
		if got := fieldOf(ok, "Session-Expires"); got != c.expires || fieldOf(ok, "Require") != c.require {
			t.Errorf("%q: %q, Require %q; want %q, %q", c.asked, got, fieldOf(ok, "Require"), c.expires, c.require)
		}
	}
}

func TestTooBriefSessionsAreRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.ask("INVITE", "i1", "", 1, "Supported: timer\r\nSession-Expires: 89\r\n", "v=0\r\n")
	if sent := l.takeSent(); len(sent) != 1 || !strings.HasPrefix(sent[0], "SIP/2.0 422") || fieldOf(sent[0], "Min-SE") != "90" {
		t.Fatalf("sent %v", sent)
	}
	l.ask("ACK", "i1", "x", 1, "", "")
	l.ask("INVITE", "i2", "", 2, "Supported: timer\r\nSession-Expires: 90\r\n", "v=0\r\n")
	(<-l.calls).Answer([]byte("v=0\r\n"))
	l.work()
	tag := l.localTag()
	l.ask("ACK", "a2", tag, 2, "", "")
	l.takeSent()
	for _, method := range []string{"UPDATE", "INVITE"} {
		l.ask(method, method, tag, 3, "Supported: timer\r\nSession-Expires: 30\r\n", "")
		if sent := l.takeSent(); !strings.HasPrefix(sent[0], "SIP/2.0 422") {
			t.Errorf("%s: sent %v", method, sent)
		}
	}
}

// RFC 4028 §10: the refresher refreshes at half the interval.
func TestWeRefreshAtHalfTheTime(t *testing.T) {
	t.Parallel()
	for allow, method := range map[string]string{"Allow: INVITE, UPDATE\r\n": "UPDATE", "Allow: INVITE\r\n": "INVITE", "": "INVITE"} {
		l := newLab(t)
		l.inbound(t, allow+"Supported: timer\r\nSession-Expires: 1000;refresher=uas\r\n")
		l.takeSent()
		for range 3 {
			l.pass(499 * time.Second)
			if len(l.sent) > 0 {
				t.Fatalf("sent early: %v", l.methods())
			}
			l.pass(time.Second)
			sent := l.takeSent()
			if len(sent) != 1 || !strings.HasPrefix(sent[0], method) || fieldOf(sent[0], "Session-Expires") != "1000;refresher=uac" {
				t.Fatalf("refreshed by %v", sent)
			}
			if hasOurs := strings.Contains(sent[0], "o=ours 1 1"); hasOurs != (method == "INVITE") {
				t.Errorf("the refresh is:\n%s", sent[0])
			}
			l.reply(sent[0], 200, "", "Session-Expires: 1000;refresher=uac\r\n", "")
			if m := l.methods(); method == "INVITE" && !slices.Equal(m, []string{"ACK"}) {
				t.Errorf("after the answer: %v", m)
			}
			l.takeSent()
		}
	}
}

func TestASilentPeerIsNoticed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	_, _, got := l.inbound(t, "Allow: UPDATE\r\n") // does not support session timers
	l.pass(900*time.Second + 33*time.Second)
	if m := l.methods(); !slices.Contains(m, "BYE") {
		t.Fatalf("no BYE: %v", m)
	}
	last := (*got)[len(*got)-1]
	if lost, ok := last.(Lost); !ok || !strings.HasPrefix(lost.Why, "session expired") {
		t.Errorf("last event %#v", last)
	}
	l.pass(time.Hour)
	if len(l.legs) != 0 || len(l.timers) != 0 {
		t.Errorf("left behind: %d legs, %d timers", len(l.legs), len(l.timers))
	}
}

func TestAPeerThatDoesNotRefreshIsHungUp(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	_, tag, got := l.inbound(t, "Supported: timer\r\nSession-Expires: 300;refresher=uac\r\n")
	for i, method := range []string{"UPDATE", "INVITE", "UPDATE"} {
		l.pass(260 * time.Second)
		body := ""
		if method == "INVITE" {
			body = "v=0\r\n"
		}
		l.ask(method, fmt.Sprint("r", i), tag, 10+i, "Supported: timer\r\nSession-Expires: 300;refresher=uac\r\n", body)
		if re, ok := (*got)[len(*got)-1].(Reinvite); ok && method == "INVITE" {
			re.Respond(200, []byte("v=0\r\n"))
			l.work()
			l.ask("ACK", "ra", tag, 10+i, "", "")
		}
		ok := l.sent[len(l.sent)-1]
		if !strings.HasPrefix(ok, "SIP/2.0 200") || fieldOf(ok, "Session-Expires") != "300;refresher=uac" {
			t.Fatalf("%s is answered:\n%s", method, ok)
		}
	}
	l.takeSent()
	l.pass(267 * time.Second)
	if len(l.sent) > 0 {
		t.Fatalf("sent too early: %v", l.methods())
	}
	l.pass(2 * time.Second)
	if m := l.methods(); !slices.Equal(m, []string{"BYE", "BYE"}) { // repeated once
		t.Errorf("sent %v, want BYE", m)
	}
	if lost, ok := (*got)[len(*got)-1].(Lost); !ok || lost.Why != "session expired" {
		t.Errorf("last event %#v", (*got)[len(*got)-1])
	}
}

func TestOurCallsAskForASessionTimer(t *testing.T) {
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
		l := newLab(t)
		_, invite, _ := l.outbound(t)
		if fieldOf(invite, "Session-Expires") != "1800" || !strings.Contains(fieldOf(invite, "Supported"), "timer") {
			t.Fatalf("INVITE is:\n%s", invite)
		}
		l.reply(invite, 200, "b", "Allow: INVITE, UPDATE\r\n"+c.granted, "v=0\r\n")
		l.takeSent()
		l.pass(c.after - time.Second)
		if len(l.sent) > 0 {
			t.Fatalf("%q: too early: %v", c.granted, l.methods())
		}
		l.pass(time.Second)
		if m := l.methods(); !slices.Equal(m, []string{c.what}) {
			t.Errorf("%q: sent %v, want %s", c.granted, m, c.what)
		}
	}
}

func TestAFurtherSideMayWantLongerSessions(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	_, invite, got := l.outbound(t)
	for _, least := range []string{"3600", "4000", "5000"} {
		l.reply(invite, 422, "b", "Min-SE: "+least+"\r\n", "")
		sent := l.takeSent() // the ACK and the retry
		if len(sent) != 2 || fieldOf(sent[1], "Session-Expires") != least || fieldOf(sent[1], "Min-SE") != least {
			t.Fatalf("sent %v", sent)
		}
		invite = sent[1]
	}
	l.reply(invite, 422, "b", "Min-SE: 6000\r\n", "") // beyond the limit of retries
	if f, ok := (*got)[0].(Failed); !ok || f.Status != 422 {
		t.Errorf("got %#v", *got)
	}
}

func TestRefusedRefreshDoesNotEndTheCall(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	_, _, got := l.inbound(t, "Allow: UPDATE\r\n")
	l.takeSent()
	l.pass(900 * time.Second)
	l.reply(l.takeSent()[0], 501, "", "", "")
	l.pass(0)
	sent := l.takeSent()
	if len(sent) != 1 || !strings.HasPrefix(sent[0], "INVITE") {
		t.Fatalf("after 501: %v", sent)
	}
	l.reply(sent[0], 488, "", "", "")
	l.takeSent()
	l.pass(901 * time.Second)
	if m := l.methods(); !slices.Contains(m, "INVITE") {
		t.Errorf("sent %v, want another refresh", m)
	}
	if len(*got) != 1 { // Acked
		t.Errorf("events %#v", *got)
	}
}

func TestOfferDuringARefreshWaits(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	leg, _, _ := l.inbound(t, "")
	l.pass(900 * time.Second)
	var got error
	leg.reoffer([]byte("v=0\r\n"), func(_ *message, err error) { got = err })
	var status *StatusError
	if !errors.As(got, &status) || status.Status != 491 {
		t.Errorf("got %v, want 491: try again", got)
	}
}

func TestSessionTimersCanBeOff(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.srv.config.SessionExpires = -1
	l.inbound(t, "")
	if e := fieldOf(l.sent[1], "Session-Expires"); e != "" {
		t.Errorf("given %q", e)
	}
	l.takeSent()
	l.pass(5 * time.Hour)
	if len(l.sent) > 0 {
		t.Errorf("sent %v", l.methods())
	}
}

// RFC 3262 §3: without a PRACK the call is refused after 64*T1.
func TestUnacknowledgedProvisionalRefusesTheCall(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.ask("INVITE", "i1", "", 1, "Supported: 100rel\r\n", "v=0\r\n")
	in := <-l.calls
	var got []Event
	in.Listen(func(e Event) { got = append(got, e) })
	in.Ring(183, []byte("v=0\r\n"))
	in.Answer([]byte("v=0\r\n"))
	l.work()
	l.pass(31 * time.Second)
	if m := l.methods(); !slices.Equal(m, []string{"100", "183", "183", "183", "183", "183", "183"}) { // 0 .5 1.5 3.5 7.5 15.5
		t.Fatalf("sent %v", m)
	}
	l.takeSent()
	l.pass(time.Second)
	if m := l.methods(); !slices.Contains(m, "504") {
		t.Errorf("sent %v, want 504", m)
	}
	if _, ok := got[0].(Lost); !ok || len(got) != 1 {
		t.Errorf("events %#v", got)
	}
}

func TestLateOffersStayOutOfProvisionalResponses(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.ask("INVITE", "i1", "", 1, "Supported: 100rel\r\n", "")
	(<-l.calls).Ring(183, []byte("v=0\r\n"))
	l.work()
	if strings.Contains(l.sent[1], "v=0") || fieldOf(l.sent[1], "RSeq") != "" {
		t.Errorf("sent:\n%s", l.sent[1])
	}
	_, err := l.srv.Invite(context.Background(), Outgoing{URI: "sip:b@192.0.2.1"}, func(Event) {})
	l.work()
	if inv := l.sent[len(l.sent)-1]; err != nil || strings.Contains(inv, "100rel") {
		t.Errorf("%v, sent:\n%s", err, inv)
	}
}

// A restored dialog's session timer runs from its start.
func TestRestoredDialogIsRefreshed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	leg, _, _ := l.inbound(t, "Allow: UPDATE\r\nSupported: timer\r\nSession-Expires: 300;refresher=uas\r\n")
	d := leg.snapshot()
	if d.Session != 300 || !d.Refresher || !d.Updates || !strings.Contains(string(d.SDP), "o=ours") {
		t.Fatalf("state %+v", d)
	}
	next := newLab(t)
	if _, err := next.srv.Restore(d, func(Event) {}); err != nil {
		t.Fatal(err)
	}
	next.work()
	next.pass(149 * time.Second)
	if len(next.sent) > 0 {
		t.Fatalf("sent early: %v", next.methods())
	}
	next.pass(time.Second)
	if m := next.methods(); !slices.Equal(m, []string{"UPDATE"}) {
		t.Errorf("sent %v, want UPDATE", m)
	}
}

// SDP that changed in the answer to a refresh is reported, once.
func TestRefreshTellsWhatChanged(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	_, _, got := l.inbound(t, "")
	for _, c := range []struct {
		body string
		told bool
	}{{"v=0\r\n", false}, {"v=0\r\nmoved", true}, {"v=0\r\nmoved", false}, {"", false}} {
		*got = nil
		l.takeSent()
		l.pass(900 * time.Second)
		l.reply(l.takeSent()[0], 200, "", "", c.body)
		if told := len(*got) == 1; told != c.told || told && string((*got)[0].(Refreshed).SDP) != c.body {
			t.Errorf("%q: events %#v", c.body, *got)
		}
	}
}

func TestStateHoldsNoKeys(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	leg, _, _ := l.inbound(t, "")
	for sdp, kept := range map[string]bool{"v=0\r\n": true, "a=crypto:1 X inline:key\r\n": false, "a=ice-pwd:secret\r\n": false} {
		leg.sdp = []byte(sdp)
		if got := leg.snapshot().SDP != nil; got != kept {
			t.Errorf("%q is kept: %v, want %v", sdp, got, kept)
		}
	}
}

// RFC 3261 §13.3.1.1: the provisional response of a long-ringing call is repeated every minute.
func TestLongRingingIsRepeated(t *testing.T) {
	t.Parallel()
	for fields, again := range map[string]string{"": "", "Require: 100rel\r\n": "100rel"} {
		l := newLab(t)
		l.ask("INVITE", "i1", "", 1, fields, "v=0\r\n")
		in := <-l.calls
		in.Ring(183, []byte("v=0\r\n"))
		l.work()
		if again != "" {
			l.ask("PRACK", "p1", l.localTag(), 2, "RAck: "+fieldOf(l.sent[1], "RSeq")+" 1 INVITE\r\n", "")
		}
		l.takeSent()
		l.pass(59 * time.Second)
		if len(l.sent) > 0 {
			t.Fatalf("sent early: %v", l.methods())
		}
		l.pass(time.Second)
		if m := l.methods(); !slices.Equal(m, []string{"183"}) || strings.Contains(l.sent[0], "v=0") || fieldOf(l.sent[0], "Require") != again {
			t.Errorf("%q: sent %v\n%s", fields, m, l.sent)
		}
		in.Answer([]byte("v=0\r\n"))
		l.work()
	}
}
