package sip_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
)

// transferProgress collects the progress of a transfer.
type told chan int

func (p told) on(status int, _ string) { p <- status }

func (p told) want(t testing.TB, status int) {
	t.Helper()
	select {
	case got := <-p:
		if got != status {
			t.Fatalf("transfer told %d, want %d", got, status)
		}
	case <-time.After(patience):
		t.Fatalf("transfer told nothing, want %d", status)
	}
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// acceptRefer answers the next REFER and returns its event.
func referred(t testing.TB, e events, status int) chan sip.Refer {
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
		case <-time.After(patience):
			t.Error("no REFER came")
		}
	}()
	return got
}

func TestBlindTransferIsToldToItsEnd(t *testing.T) {
	t.Parallel()
	for _, transport := range bothTransports {
		caller, _, _, b := connected(t, transport)
		for range 2 { // the second has an id of its own
			got, progress := referred(t, b, 202), make(told, 16)
			tr := sip.Transfer{Target: "sip:carol@example.com", ReferredBy: "<sip:alice@example.com>"}
			if err := caller.Refer(within(t), tr, progress.on); err != nil {
				t.Fatal(err)
			}
			r := <-got
			if r.Target.User != "carol" || r.ReferredBy != "<sip:alice@example.com>" || r.Replaces != nil || r.RawReplaces != "" {
				t.Errorf("REFER reads %+v", r)
			}
			progress.want(t, 100)
			r.Notify(180, "")
			progress.want(t, 180)
			r.Notify(200, "OK")
			progress.want(t, 200)
			r.Notify(200, "OK") // after the end: no effect
		}
		caller.Bye(sip.Reason{})
		want[sip.Bye](t, b)
	}
}

func TestTransferSkipsToWhatIsNewest(t *testing.T) {
	t.Parallel()
	caller, callee, a, b := connected(t, sip.UDP)
	got, progress := referred(t, b, 202), make(told, 16)
	if err := caller.Refer(within(t), sip.Transfer{Target: "sip:carol@x"}, progress.on); err != nil {
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
		case <-time.After(patience):
			t.Fatal("the end was not told")
		}
	}
	if last != 486 {
		t.Errorf("the end is %d, want 486", last)
	}
	want[sip.Bye](t, a)
	want[sip.Closed](t, b)
}

func TestRefusedTransferKeepsTheCall(t *testing.T) {
	t.Parallel()
	caller, _, a, b := connected(t, sip.UDP)
	referred(t, b, 603)
	err := caller.Refer(within(t), sip.Transfer{Target: "sip:carol@x"}, nil)
	var status *sip.StatusError
	if !errors.As(err, &status) || status.Status != 603 {
		t.Fatalf("got %v, want 603", err)
	}
	caller.Bye(sip.Reason{})
	want[sip.Closed](t, a)
}

func TestQuietTransferSendsNoNotify(t *testing.T) {
	t.Parallel()
	caller, _, a, b := connected(t, sip.UDP)
	got, progress := referred(t, b, 202), make(told, 16)
	if err := caller.Refer(within(t), sip.Transfer{Target: "sip:carol@x", Quiet: true}, progress.on); err != nil {
		t.Fatal(err)
	}
	(<-got).Notify(200, "OK")
	caller.Bye(sip.Reason{})
	want[sip.Closed](t, a)
	want[sip.Bye](t, b)
	if len(progress) > 0 {
		t.Errorf("told %d", <-progress)
	}
}

func TestReferrerMayHangUpBeforeTheEnd(t *testing.T) {
	t.Parallel()
	caller, _, a, b := connected(t, sip.UDP)
	got, progress := referred(t, b, 202), make(told, 16)
	if err := caller.Refer(within(t), sip.Transfer{Target: "sip:carol@x"}, progress.on); err != nil {
		t.Fatal(err)
	}
	r := <-got
	caller.Bye(sip.Reason{})
	want[sip.Closed](t, a)
	want[sip.Bye](t, b)
	r.Notify(200, "OK")
	none(t, b)
}

func TestAttendedTransferNamesOurLeg(t *testing.T) {
	t.Parallel()
	phone, server := listen(t, sip.Config{}), listen(t, sip.Config{})
	for range 4 { // Call-IDs belong to different shards
		first, _, _, b := connect(t, phone, server, sip.UDP)
		second, other, _, _ := connect(t, phone, server, sip.UDP)
		third, called, _, _ := connect(t, server, phone, sip.UDP) // the consultation call is inbound
		for consultation, ours := range map[*sip.Leg]*sip.Leg{second: other, called: third} {
			got := referred(t, b, 202)
			tr := sip.Transfer{Target: server.uri("carol"), Replaces: consultation}
			if err := first.Refer(within(t), tr, nil); err != nil {
				t.Fatal(err)
			}
			if r := <-got; r.Replaces != ours {
				t.Errorf("Replaces %q names %p, want %p", r.RawReplaces, r.Replaces, ours)
			}
		}
	}
}

func TestTransferToADialogElsewhereKeepsItsName(t *testing.T) {
	t.Parallel()
	caller, _, _, b := connected(t, sip.UDP)
	got := referred(t, b, 202)
	if err := caller.Refer(within(t), sip.Transfer{Target: "sip:c@x?Replaces=a%3Bto-tag%3D1%3Bfrom-tag%3D2"}, nil); err != nil {
		t.Fatal(err)
	}
	if r := <-got; r.Replaces != nil || r.RawReplaces != "a;to-tag=1;from-tag=2" {
		t.Errorf("got %p %q", r.Replaces, r.RawReplaces)
	}
}

func TestCallReplacesAnother(t *testing.T) {
	t.Parallel()
	phone, server := listen(t, sip.Config{}), listen(t, sip.Config{})
	_, ours, a, _ := connect(t, phone, server, sip.UDP)
	name := sip.NameOf(ours)
	place := func(replaces string) events {
		t.Helper()
		e := newEvents()
		_, err := phone.Server.Invite(within(t), sip.Outgoing{URI: server.uri("bob"), SDP: offerSDP, ReplacesDialog: replaces}, e.on)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	e := place(name)
	in := server.incoming(t)
	if in.Replaces != ours {
		t.Fatalf("it replaces %p, want %p", in.Replaces, ours)
	}
	in.Answer(answerSDP)
	in.Replaces.Bye(sip.Reason{})
	want[sip.Answered](t, e)
	want[sip.Bye](t, a)
	for replaces, status := range map[string]int{
		"nobody;to-tag=1;from-tag=2":         481,
		"nobody":                             400,
		sip.NameOf(in.Leg()) + ";early-only": 486,
	} {
		if f := want[sip.Failed](t, place(replaces)); f.Status != status {
			t.Errorf("%s is answered %d, want %d", replaces, f.Status, status)
		}
	}
	in.Leg().Bye(sip.Reason{})
}

// callFromPeer makes a call from a hand-driven peer and returns the From, To and Call-ID lines of its requests inside
// the dialog.
func inCall(t *testing.T, network string) (p *peer, leg *sip.Leg, e events, dialog string) {
	t.Helper()
	server := listen(t, sip.Config{})
	p, e = newPeer(t, network, server), newEvents()
	p.ask("INVITE", "al", "c1", 1, "")
	in := server.incoming(t)
	in.Listen(e.on)
	in.Answer(offerSDP)
	ok := p.expect("SIP/2.0 200")
	dialog = "From: " + headerOf(ok, "From") + "\nTo: " + headerOf(ok, "To") + "\nCall-ID: c1\n"
	p.inside("ACK", dialog, 1, "", "")
	want[sip.Acked](t, e)
	return p, in.Leg(), e, dialog
}

// sendInDialog sends a request inside a dialog.
func (p *peer) inside(method, dialog string, seq int, extra, body string) {
	p.t.Helper()
	network := "UDP"
	if p.tcp {
		network = "TCP"
	}
	local := p.conn.LocalAddr().String()
	p.send("%s sip:%s SIP/2.0\nVia: SIP/2.0/%s %s;branch=z9hG4bKi%d;rport\nMax-Forwards: 70\n%sCSeq: %d %s\nContact: <sip:al@%s>\n%sContent-Length: %d\n\n%s",
		method, p.conn.RemoteAddr(), network, local, serial.Add(1), dialog, seq, method, local, extra, len(body), body)
}

func TestStrangeTransfersAreRefused(t *testing.T) {
	t.Parallel()
	p, _, e, dialog := inCall(t, "udp")
	for i, c := range []struct{ fields, status string }{
		{"", "400"},
		{"Refer-To: <sip:a@x>\nRefer-To: <sip:b@x>\n", "400"},
		{"Refer-To: nonsense\n", "400"},
		{"Refer-To: <sip:a@x;method=BYE>\n", "501"},
	} {
		p.inside("REFER", dialog, 10+i, c.fields, "")
		p.expect("SIP/2.0 " + c.status)
	}
	p.ask("REFER", "al", "other", 1, "Refer-To: <sip:a@x>\n")
	p.expect("SIP/2.0 403")
	p.inside("NOTIFY", dialog, 20, "Event: refer\nSubscription-State: active\n", "")
	p.expect("SIP/2.0 481")
	p.inside("NOTIFY", dialog, 21, "Event: talk\nSubscription-State: active\n", "")
	p.expect("SIP/2.0 489")
	none(t, e)
}

func TestNotifyTellsTheTransferOnTheWire(t *testing.T) {
	t.Parallel()
	p, _, e, dialog := inCall(t, "udp")
	p.inside("REFER", dialog, 2, "Refer-To: <sip:carol@x>\n", "")
	r := want[sip.Refer](t, e)
	r.Respond(202)
	p.expect("SIP/2.0 202")
	n := p.expect("NOTIFY ")
	if !strings.HasSuffix(n, "\r\n\r\nSIP/2.0 100 Trying\r\n") || headerOf(n, "Event") != "refer" ||
		!strings.HasPrefix(headerOf(n, "Subscription-State"), "active") || headerOf(n, "Content-Type") != "message/sipfrag;version=2.0" {
		t.Errorf("got:\n%s", n)
	}
	p.answer(n, 200, "", "")
	r.Notify(603, "Decline")
	n = p.expect("NOTIFY ")
	if !strings.HasSuffix(n, "SIP/2.0 603 Decline\r\n") || !strings.HasPrefix(headerOf(n, "Subscription-State"), "terminated") {
		t.Errorf("got:\n%s", n)
	}
	p.answer(n, 481, "", "") // it lost the subscription, not the call
	p.inside("INFO", dialog, 3, "", "")
	want[sip.Info](t, e).Respond(200)
	p.expect("SIP/2.0 200")
	p.inside("REFER", dialog, 4, "Refer-To: <sip:carol@x>\n", "")
	want[sip.Refer](t, e).Respond(202)
	p.expect("SIP/2.0 202")
	if n = p.expect("NOTIFY "); headerOf(n, "Event") != "refer;id=4" {
		t.Errorf("the second subscription is %q", headerOf(n, "Event"))
	}
}

func TestOneNotifyIsUnderWayAtATime(t *testing.T) {
	t.Parallel()
	p, _, e, dialog := inCall(t, "tcp")
	p.inside("REFER", dialog, 2, "Refer-To: <sip:carol@x>\n", "")
	r := want[sip.Refer](t, e)
	r.Respond(202)
	p.expect("SIP/2.0 202")
	first := p.expect("NOTIFY ")
	r.Notify(180, "Ringing")
	r.Notify(183, "Session Progress")
	p.inside("INFO", dialog, 3, "", "") // after any NOTIFY that the two statuses caused
	want[sip.Info](t, e).Respond(200)
	p.expect("SIP/2.0 200")
	p.answer(first, 200, "", "")
	if n := p.expect("NOTIFY "); !strings.HasSuffix(n, "SIP/2.0 183 Session Progress\r\n") {
		t.Errorf("got:\n%s", n)
	}
}

func TestWhatCannotBeReplaced(t *testing.T) {
	t.Parallel()
	phone, server := listen(t, sip.Config{}), listen(t, sip.Config{})
	replace := func(name string, status int) {
		t.Helper()
		e := newEvents()
		if _, err := phone.Server.Invite(within(t), sip.Outgoing{URI: server.uri("bob"), SDP: offerSDP, ReplacesDialog: name}, e.on); err != nil {
			t.Fatal(err)
		}
		if f := want[sip.Failed](t, e); f.Status != status {
			t.Errorf("answered %d, want %d", f.Status, status)
		}
	}
	// An inbound call that still rings cannot be replaced.
	a := newEvents()
	ringing := place(t, phone, server, sip.UDP, offerSDP, a)
	in := server.incoming(t)
	replace(sip.NameOf(in.Leg()), 481)
	ringing.Cancel()
	want[sip.Failed](t, a)

	// A call that is ending gets 603.
	p := newPeer(t, "udp", server)
	p.ask("INVITE", "al", "dying", 1, "")
	in = server.incoming(t)
	in.Answer(offerSDP)
	ok := p.expect("SIP/2.0 200")
	p.inside("ACK", "From: "+headerOf(ok, "From")+"\nTo: "+headerOf(ok, "To")+"\nCall-ID: dying\n", 1, "", "")
	name := sip.NameOf(in.Leg())
	in.Leg().Bye(sip.Reason{})
	bye := p.expect("BYE ")
	replace(name, 603)
	p.answer(bye, 200, "", "")
}

func TestACallThatRingsAtAnotherPhoneIsPickedUp(t *testing.T) {
	t.Parallel()
	phone, server := listen(t, sip.Config{}), listen(t, sip.Config{})
	a, e := newEvents(), newEvents()
	ours := place(t, server, phone, sip.UDP, offerSDP, a)
	there := phone.incoming(t)
	there.Ring(180, nil)
	want[sip.Provisional](t, a)
	early := sip.NameOf(there.Leg()) + ";early-only" // as learned by the phone from the ringing one
	if _, err := phone.Server.Invite(within(t), sip.Outgoing{URI: server.uri("bob"), SDP: offerSDP, ReplacesDialog: early}, e.on); err != nil {
		t.Fatal(err)
	}
	if in := server.incoming(t); in.Replaces != ours {
		t.Errorf("it replaces %p, want %p", in.Replaces, ours)
	}
}
