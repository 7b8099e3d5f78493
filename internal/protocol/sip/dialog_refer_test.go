package sip_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
)

// transferProgress collects the progress of a transfer.
type transferProgress chan int

func (p transferProgress) record(status int, _ string) { p <- status }

func (p transferProgress) wantStatus(t testing.TB, status int) {
	t.Helper()
	select {
	case got := <-p:
		if got != status {
			t.Fatalf("transfer told %d, want %d", got, status)
		}
	case <-time.After(testTimeout):
		t.Fatalf("transfer told nothing, want %d", status)
	}
}

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// acceptRefer answers the next REFER and returns its event.
func acceptRefer(t testing.TB, e eventLog, status int) chan sip.Refer {
	got := make(chan sip.Refer, 1)
	go func() {
		select {
		case ev := <-e:
			r, ok := ev.(sip.Refer)
			if !ok {
				t.Errorf("got %#v, want a Refer", ev)
				return
			}
			r.Respond(status)
			got <- r
		case <-time.After(testTimeout):
			t.Error("no REFER came")
		}
	}()
	return got
}

func TestTransfer_BlindReportsProgress(t *testing.T) {
	t.Parallel()
	for _, transport := range bothTransports {
		caller, _, _, b := newAnsweredCall(t, transport)
		for range 2 { // the second has an id of its own
			got, progress := acceptRefer(t, b, 202), make(transferProgress, 16)
			tr := sip.TransferRequest{Target: "sip:carol@example.com", ReferredBy: "<sip:alice@example.com>"}
			if err := caller.Refer(testContext(t), tr, progress.record); err != nil {
				t.Fatal(err)
			}
			r := <-got
			if r.Target.User != "carol" || r.ReferredBy != "<sip:alice@example.com>" || r.Replaces != nil || r.RawReplaces != "" {
				t.Errorf("REFER reads %+v", r)
			}
			progress.wantStatus(t, 100)
			r.Notify(180, "")
			progress.wantStatus(t, 180)
			r.Notify(200, "OK")
			progress.wantStatus(t, 200)
			r.Notify(200, "OK") // after the end: no effect
		}
		caller.Bye(sip.Reason{})
		wantEvent[sip.Bye](t, b)
	}
}

func TestTransfer_NewestStatusReplacesWaiting(t *testing.T) {
	t.Parallel()
	caller, callee, a, b := newAnsweredCall(t, sipmsg.UDP)
	got, progress := acceptRefer(t, b, 202), make(transferProgress, 16)
	if err := caller.Refer(testContext(t), sip.TransferRequest{Target: "sip:carol@x"}, progress.record); err != nil {
		t.Fatal(err)
	}
	r := <-got
	r.Notify(180, "")
	r.Notify(183, "")
	r.Notify(486, "Busy Here")
	callee.Bye(sip.Reason{}) // the waiting status is sent first
	last := 0
	for last < 200 {
		select {
		case last = <-progress:
		case <-time.After(testTimeout):
			t.Fatal("the end was not told")
		}
	}
	if last != 486 {
		t.Errorf("the end is %d, want 486", last)
	}
	wantEvent[sip.Bye](t, a)
	wantEvent[sip.Closed](t, b)
}

func TestTransfer_RefusedKeepsCall(t *testing.T) {
	t.Parallel()
	caller, _, a, b := newAnsweredCall(t, sipmsg.UDP)
	acceptRefer(t, b, 603)
	err := caller.Refer(testContext(t), sip.TransferRequest{Target: "sip:carol@x"}, nil)
	var status *sip.StatusError
	if !errors.As(err, &status) || status.Status != 603 {
		t.Fatalf("got %v, want 603", err)
	}
	caller.Bye(sip.Reason{})
	wantEvent[sip.Closed](t, a)
}

func TestTransfer_ReferSubFalseSendsNoNotify(t *testing.T) {
	t.Parallel()
	caller, _, a, b := newAnsweredCall(t, sipmsg.UDP)
	got, progress := acceptRefer(t, b, 202), make(transferProgress, 16)
	if err := caller.Refer(testContext(t), sip.TransferRequest{Target: "sip:carol@x", NoNotify: true}, progress.record); err != nil {
		t.Fatal(err)
	}
	(<-got).Notify(200, "OK")
	caller.Bye(sip.Reason{})
	wantEvent[sip.Closed](t, a)
	wantEvent[sip.Bye](t, b)
	if len(progress) > 0 {
		t.Errorf("told %d", <-progress)
	}
}

func TestTransfer_ReferrerHangsUpEarly(t *testing.T) {
	t.Parallel()
	caller, _, a, b := newAnsweredCall(t, sipmsg.UDP)
	got, progress := acceptRefer(t, b, 202), make(transferProgress, 16)
	if err := caller.Refer(testContext(t), sip.TransferRequest{Target: "sip:carol@x"}, progress.record); err != nil {
		t.Fatal(err)
	}
	r := <-got
	caller.Bye(sip.Reason{})
	wantEvent[sip.Closed](t, a)
	wantEvent[sip.Bye](t, b)
	r.Notify(200, "OK")
	wantNoEvent(t, b)
}

func TestTransfer_AttendedFindsLeg(t *testing.T) {
	t.Parallel()
	phone, server := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
	for range 4 { // Call-IDs belong to different shards
		first, _, _, b := answeredCall(t, phone, server, sipmsg.UDP)
		second, other, _, _ := answeredCall(t, phone, server, sipmsg.UDP)
		third, called, _, _ := answeredCall(t, server, phone, sipmsg.UDP) // the consultation call is inbound
		for consultation, ours := range map[*sip.Leg]*sip.Leg{second: other, called: third} {
			got := acceptRefer(t, b, 202)
			tr := sip.TransferRequest{Target: server.uri("carol"), Replaces: consultation}
			if err := first.Refer(testContext(t), tr, nil); err != nil {
				t.Fatal(err)
			}
			if r := <-got; r.Replaces != ours {
				t.Errorf("Replaces %q names %p, want %p", r.RawReplaces, r.Replaces, ours)
			}
		}
	}
}

func TestTransfer_ReplacesOfOtherServerKept(t *testing.T) {
	t.Parallel()
	caller, _, _, b := newAnsweredCall(t, sipmsg.UDP)
	got := acceptRefer(t, b, 202)
	if err := caller.Refer(testContext(t), sip.TransferRequest{Target: "sip:c@x?Replaces=a%3Bto-tag%3D1%3Bfrom-tag%3D2"}, nil); err != nil {
		t.Fatal(err)
	}
	if r := <-got; r.Replaces != nil || r.RawReplaces != "a;to-tag=1;from-tag=2" {
		t.Errorf("got %p %q", r.Replaces, r.RawReplaces)
	}
}

func TestReplaces_NewCallReplacesLeg(t *testing.T) {
	t.Parallel()
	phone, server := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
	_, ours, a, _ := answeredCall(t, phone, server, sipmsg.UDP)
	name := sip.ReplacesOf(ours)
	place := func(replaces string) eventLog {
		t.Helper()
		e := newEventLog()
		_, err := phone.Server.Invite(testContext(t), sip.Outgoing{URI: server.uri("bob"), SDP: testOfferSDP, ReplacesDialog: replaces},
			e.record)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := place(name)
	in := server.wantInbound(t)
	if in.Replaces != ours {
		t.Fatalf("it replaces %p, want %p", in.Replaces, ours)
	}
	in.Answer(testAnswerSDP)
	in.Replaces.Bye(sip.Reason{})
	wantEvent[sip.Answered](t, e)
	wantEvent[sip.Bye](t, a)
	for replaces, status := range map[string]int{
		"nobody;to-tag=1;from-tag=2":             481,
		"nobody":                                 400,
		sip.ReplacesOf(in.Leg()) + ";early-only": 486,
	} {
		if f := wantEvent[sip.Failed](t, place(replaces)); f.Status != status {
			t.Errorf("%s is answered %d, want %d", replaces, f.Status, status)
		}
	}
	in.Leg().Bye(sip.Reason{})
}

// callFromPeer makes a call from a hand-driven peer and returns the From, To and Call-ID lines of its requests inside
// the dialog.
func callFromPeer(t *testing.T, network string) (p *peer, leg *sip.Leg, e eventLog, dialog string) {
	t.Helper()
	server := newTestServer(t, sip.Config{})
	p, e = newPeer(t, network, server), newEventLog()
	p.sendRequest("INVITE", "al", "c1", 1, "")
	in := server.wantInbound(t)
	in.Listen(e.record)
	in.Answer(testOfferSDP)
	ok := p.wantMessage("SIP/2.0 200")
	dialog = "From: " + headerValue(ok, "From") + "\nTo: " + headerValue(ok, "To") + "\nCall-ID: c1\n"
	p.sendInDialog("ACK", dialog, 1, "", "")
	wantEvent[sip.Acked](t, e)
	return p, in.Leg(), e, dialog
}

// sendInDialog sends a request inside a dialog.
func (p *peer) sendInDialog(method, dialog string, seq int, extra, body string) {
	p.t.Helper()
	network := "UDP"
	if p.tcp {
		network = "TCP"
	}
	local := p.conn.LocalAddr().String()
	p.send("%s sip:%s SIP/2.0\nVia: SIP/2.0/%s %s;branch=z9hG4bKi%d;rport\nMax-Forwards: 70\n%sCSeq: %d %s\nContact: <sip:al@%s>\n%sContent-Length: %d\n\n%s",
		method, p.conn.RemoteAddr(), network, local, requestSerial.Add(1), dialog, seq, method, local, extra, len(body), body)
}

func TestTransfer_MalformedReferRefused(t *testing.T) {
	t.Parallel()
	p, _, e, dialog := callFromPeer(t, "udp")
	for i, c := range []struct{ fields, status string }{
		{"", "400"},
		{"Refer-To: <sip:a@x>\nRefer-To: <sip:b@x>\n", "400"},
		{"Refer-To: nonsense\n", "400"},
		{"Refer-To: <sip:a@x;method=BYE>\n", "501"},
	} {
		p.sendInDialog("REFER", dialog, 10+i, c.fields, "")
		p.wantMessage("SIP/2.0 " + c.status)
	}
	p.sendRequest("REFER", "al", "other", 1, "Refer-To: <sip:a@x>\n")
	p.wantMessage("SIP/2.0 403")
	p.sendInDialog("NOTIFY", dialog, 20, "Event: refer\nSubscription-State: active\n", "")
	p.wantMessage("SIP/2.0 481")
	p.sendInDialog("NOTIFY", dialog, 21, "Event: talk\nSubscription-State: active\n", "")
	p.wantMessage("SIP/2.0 489")
	wantNoEvent(t, e)
}

func TestTransfer_NotifyOnTheWire(t *testing.T) {
	t.Parallel()
	p, _, e, dialog := callFromPeer(t, "udp")
	p.sendInDialog("REFER", dialog, 2, "Refer-To: <sip:carol@x>\n", "")
	r := wantEvent[sip.Refer](t, e)
	r.Respond(202)
	p.wantMessage("SIP/2.0 202")
	n := p.wantMessage("NOTIFY ")
	if !strings.HasSuffix(n, "\r\n\r\nSIP/2.0 100 Trying\r\n") || headerValue(n, "Event") != "refer" ||
		!strings.HasPrefix(headerValue(n, "Subscription-State"), "active") || headerValue(n, "Content-Type") != "message/sipfrag;version=2.0" {
		t.Errorf("got:\n%s", n)
	}
	p.respond(n, 200, "", "")
	r.Notify(603, "Decline")
	n = p.wantMessage("NOTIFY ")
	if !strings.HasSuffix(n, "SIP/2.0 603 Decline\r\n") || !strings.HasPrefix(headerValue(n, "Subscription-State"), "terminated") {
		t.Errorf("got:\n%s", n)
	}
	p.respond(n, 481, "", "") // it lost the subscription, not the call
	p.sendInDialog("INFO", dialog, 3, "", "")
	p.wantMessage("SIP/2.0 200")
	p.sendInDialog("REFER", dialog, 4, "Refer-To: <sip:carol@x>\n", "")
	wantEvent[sip.Refer](t, e).Respond(202)
	p.wantMessage("SIP/2.0 202")
	if n = p.wantMessage("NOTIFY "); headerValue(n, "Event") != "refer;id=4" {
		t.Errorf("the second subscription is %q", headerValue(n, "Event"))
	}
}

func TestTransfer_OneNotifyAtATime(t *testing.T) {
	t.Parallel()
	p, _, e, dialog := callFromPeer(t, "tcp")
	p.sendInDialog("REFER", dialog, 2, "Refer-To: <sip:carol@x>\n", "")
	r := wantEvent[sip.Refer](t, e)
	r.Respond(202)
	p.wantMessage("SIP/2.0 202")
	first := p.wantMessage("NOTIFY ")
	r.Notify(180, "Ringing")
	r.Notify(183, "Session Progress")
	p.sendInDialog("INFO", dialog, 3, "", "") // after any NOTIFY that the two statuses caused
	p.wantMessage("SIP/2.0 200")
	p.respond(first, 200, "", "")
	if n := p.wantMessage("NOTIFY "); !strings.HasSuffix(n, "SIP/2.0 183 Session Progress\r\n") {
		t.Errorf("got:\n%s", n)
	}
}

func TestReplaces_Refused(t *testing.T) {
	t.Parallel()
	phone, server := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
	replace := func(name string, status int) {
		t.Helper()
		e := newEventLog()
		if _, err := phone.Server.Invite(testContext(t), sip.Outgoing{URI: server.uri("bob"), SDP: testOfferSDP, ReplacesDialog: name},
			e.record); err != nil {
			t.Fatal(err)
		}
		if f := wantEvent[sip.Failed](t, e); f.Status != status {
			t.Errorf("answered %d, want %d", f.Status, status)
		}
	}
	// An inbound call that still rings cannot be replaced.
	a := newEventLog()
	ringing := placeCall(t, phone, server, sipmsg.UDP, testOfferSDP, a)
	in := server.wantInbound(t)
	replace(sip.ReplacesOf(in.Leg()), 481)
	ringing.Cancel()
	wantEvent[sip.Failed](t, a)

	// A call that is ending gets 603.
	p := newPeer(t, "udp", server)
	p.sendRequest("INVITE", "al", "dying", 1, "")
	in = server.wantInbound(t)
	in.Answer(testOfferSDP)
	ok := p.wantMessage("SIP/2.0 200")
	p.sendInDialog("ACK", "From: "+headerValue(ok, "From")+"\nTo: "+headerValue(ok, "To")+"\nCall-ID: dying\n", 1, "", "")
	name := sip.ReplacesOf(in.Leg())
	in.Leg().Bye(sip.Reason{})
	bye := p.wantMessage("BYE ")
	replace(name, 603)
	p.respond(bye, 200, "", "")
}

func TestReplaces_PickupOfRingingCall(t *testing.T) {
	t.Parallel()
	phone, server := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
	a, e := newEventLog(), newEventLog()
	ours := placeCall(t, server, phone, sipmsg.UDP, testOfferSDP, a)
	there := phone.wantInbound(t)
	there.Ring(180, nil)
	wantEvent[sip.Provisional](t, a)
	early := sip.ReplacesOf(there.Leg()) + ";early-only" // as learned by the phone from the ringing one
	if _, err := phone.Server.Invite(testContext(t), sip.Outgoing{URI: server.uri("bob"), SDP: testOfferSDP, ReplacesDialog: early},
		e.record); err != nil {
		t.Fatal(err)
	}
	if in := server.wantInbound(t); in.Replaces != ours {
		t.Errorf("it replaces %p, want %p", in.Replaces, ours)
	}
}
