package sip_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"soniq/internal/protocol/sip"
)

// restartedServer is a server with a handler that restores dialogs before the first message.
type restarted struct {
	phone
	states []sip.DialogState
	on     []events
	legs   []*sip.Leg
	err    error
}

// Serve is called by Listen.
func (r *restarted) Serve(s *sip.Server) {
	for i, d := range r.states {
		l, err := s.Restore(d, r.on[i].on)
		if err != nil {
			r.err = err
			return
		}
		r.legs = append(r.legs, l)
	}
}

// storedState returns a leg's state after encoding and decoding.
func kept(t testing.TB, l *sip.Leg) (d sip.DialogState) {
	t.Helper()
	b, err := json.Marshal(l.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// restartServer closes a server without ending its calls and starts another on its port.
func restart(t testing.TB, old *phone, states ...sip.DialogState) *restarted {
	t.Helper()
	addr := old.Addr().String()
	old.Close()
	r := &restarted{states: states, phone: phone{calls: make(chan *sip.Inbound, 16)}}
	for range states {
		r.on = append(r.on, newEvents())
	}
	s, err := sip.Listen(context.Background(), sip.Config{Addr: addr, Accounts: sip.AnySource{}}, r)
	if err != nil || r.err != nil {
		t.Fatal(err, r.err)
	}
	r.Server = s
	t.Cleanup(func() { s.Close() })
	return r
}

// answerReinvites answers the re-INVITEs of a phone.
func serve(e events, done chan<- sip.Event) {
	for ev := range e {
		if re, ok := ev.(sip.Reinvite); ok {
			re.Respond(200, answerSDP)
			continue
		}
		done <- ev
	}
}

func TestCallsSurviveARestart(t *testing.T) {
	t.Parallel()
	for _, transport := range bothTransports {
		for _, hangUp := range []string{"we", "they"} {
			t.Run(string(transport)+"/"+hangUp, func(t *testing.T) {
				t.Parallel()
				alice, bob, server := listen(t, sip.Config{}), listen(t, sip.Config{}), listen(t, sip.Config{})
				caller, ours, a, _ := connect(t, alice, server, transport)
				theirs, callee, _, b := connect(t, server, bob, transport)
				r := restart(t, server, kept(t, ours), kept(t, theirs))
				for i, far := range []struct {
					leg *sip.Leg
					e   events
				}{{caller, a}, {callee, b}} {
					leg, on, ended := r.legs[i], r.on[i], make(chan sip.Event, 4)
					go serve(far.e, ended)
					if got, err := leg.Reinvite(within(t), offerSDP); err != nil || !bytes.Equal(got, answerSDP) {
						t.Fatalf("leg %d: our re-INVITE: %q, %v", i, got, err)
					}
					answered := make(chan bool)
					go func() {
						(<-on).(sip.Reinvite).Respond(200, answerSDP)
						close(answered)
					}()
					if _, err := far.leg.Reinvite(within(t), offerSDP); err != nil {
						t.Fatalf("leg %d: their re-INVITE: %v", i, err)
					}
					<-answered
					if hangUp == "they" {
						far.leg.Bye(sip.Reason{})
						want[sip.Bye](t, on)
						continue
					}
					leg.Bye(sip.Reason{Q850: 16})
					if bye, ok := (<-ended).(sip.Bye); !ok || bye.Q850 != 16 {
						t.Errorf("leg %d ends with %+v", i, bye)
					}
					want[sip.Closed](t, on)
				}
				eventually(t, "no dialog left", func() bool { n := r.Stats(); return n.Dialogs == 0 && n.Calls == 0 })
			})
		}
	}
}

func TestRestoredDialogGoesOnWithHigherNumbers(t *testing.T) {
	t.Parallel()
	server := listen(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEvents()
	p.ask("INVITE", "al", "c1", 1, "Record-Route: <sip:"+p.conn.LocalAddr().String()+";lr>\n")
	in := server.incoming(t)
	in.Listen(e.on)
	in.Answer(offerSDP)
	ok := p.expect("SIP/2.0 200")
	dialog := "From: " + headerOf(ok, "From") + "\nTo: " + headerOf(ok, "To") + "\nCall-ID: c1\n"
	p.inside("ACK", dialog, 1, "", "")
	want[sip.Acked](t, e)
	go in.Leg().Info(within(t), "text/plain", []byte("x"))
	before := 0
	info := p.expect("INFO ")
	fmt.Sscan(headerOf(info, "CSeq"), &before)
	d := kept(t, in.Leg())
	p.answer(info, 200, "", "")
	r := restart(t, server, d)
	r.legs[0].Bye(sip.Reason{})
	bye, after := p.expect("BYE "), 0
	fmt.Sscan(headerOf(bye, "CSeq"), &after)
	if after < before+100 || headerOf(bye, "Route") == "" || headerOf(bye, "From") != headerOf(ok, "To") ||
		headerOf(bye, "To") != headerOf(ok, "From") || !strings.HasPrefix(bye, "BYE sip:al@") {
		t.Errorf("before %d:\n%s", before, bye)
	}
	p.answer(bye, 200, "", "")
	want[sip.Closed](t, r.on[0])
}

func TestOnlyAnsweredDialogsAreRestored(t *testing.T) {
	t.Parallel()
	pa, pb := listen(t, sip.Config{}), listen(t, sip.Config{})
	a, b := newEvents(), newEvents()
	leg := place(t, pa, pb, sip.UDP, offerSDP, a)
	in := pb.incoming(t)
	in.Listen(b.on)
	if d := leg.Snapshot(); d.CallID != "" {
		t.Errorf("a call nobody has answered has the state %+v", d)
	}
	early := in.Leg().Snapshot()
	in.Answer(answerSDP)
	want[sip.Answered](t, a)
	want[sip.Acked](t, b)
	d := kept(t, in.Leg())
	if early.CallID != d.CallID || early.LocalTag != d.LocalTag || early.Target != d.Target {
		t.Errorf("before the answer the state was %+v, after it %+v", early, d)
	}
	if _, err := pa.Restore(sip.DialogState{}, a.on); err == nil {
		t.Error("nothing is restored")
	}
	again := newEvents()
	if _, err := pb.Restore(d, again.on); err != nil {
		t.Fatal(err)
	}
	want[sip.Lost](t, again) // the dialog already exists here
	leg.Bye(sip.Reason{})
	want[sip.Bye](t, b)
	eventually(t, "the leg is over", func() bool { return in.Leg().Snapshot().CallID == "" })
}

func TestARestoredDialogAnswersWhoAsksForAPassword(t *testing.T) {
	t.Parallel()
	server := listen(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEvents()
	p.ask("INVITE", "al", "c1", 1, "")
	in := server.incoming(t)
	in.Listen(e.on)
	in.Answer(offerSDP)
	ok := p.expect("SIP/2.0 200")
	p.inside("ACK", "From: "+headerOf(ok, "From")+"\nTo: "+headerOf(ok, "To")+"\nCall-ID: c1\n", 1, "", "")
	want[sip.Acked](t, e)
	d := kept(t, in.Leg())
	d.Credentials = sip.Credentials{Username: "al", Password: "secret"}
	r := restart(t, server, d)
	r.legs[0].Bye(sip.Reason{})
	p.answer(p.expect("BYE "), 407, "one", "Proxy-Authenticate: Digest realm=\"r\", nonce=\"n\"\n")
	again := p.expect("BYE ")
	if !strings.Contains(headerOf(again, "Proxy-Authorization"), `username="al", realm="r", nonce="n"`) {
		t.Errorf("asked for a password, it says %s", again)
	}
	p.answer(again, 200, "one", "")
	want[sip.Closed](t, r.on[0])
}

func TestStateHoldsNoPassword(t *testing.T) {
	t.Parallel()
	b, _ := json.Marshal(sip.DialogState{Credentials: sip.Credentials{Username: "al", Password: "secret"}})
	if bytes.Contains(b, []byte("secret")) {
		t.Errorf("kept: %s", b)
	}
}

func TestAPhoneThatMovedIsReachedWhereItRegistered(t *testing.T) {
	t.Parallel()
	server := listen(t, sip.Config{})
	before, after, e := newPeer(t, "udp", server), newPeer(t, "udp", server), newEvents()
	at := func(p *peer) sip.Binding {
		return sip.Binding{Contact: "sip:al@phone.invalid", Transport: sip.UDP, Source: netip.MustParseAddrPort(p.conn.LocalAddr().String())}
	}
	first := at(before)
	leg, err := server.Server.Invite(within(t), sip.Outgoing{Binding: &first, SDP: offerSDP}, e.on)
	if err != nil {
		t.Fatal(err)
	}
	before.answer(before.expect("INVITE "), 200, "one", "")
	before.expect("ACK ")
	want[sip.Answered](t, e)
	leg.Rebind(at(after))
	leg.Bye(sip.Reason{})
	after.answer(after.expect("BYE sip:al@phone.invalid "), 200, "", "")
	want[sip.Closed](t, e)
}
