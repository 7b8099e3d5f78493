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
	"soniq/internal/protocol/sip/digest"
	"soniq/internal/protocol/sip/sipmsg"
)

// restartedServer is a server with a handler that restores dialogs before the first message.
type restartedServer struct {
	testServer
	states    []sip.DialogState
	eventLogs []eventLog
	legs      []*sip.Leg
	err       error
}

// Serve is called by Listen.
func (r *restartedServer) Serve(s *sip.Server) {
	for i, d := range r.states {
		l, err := s.Restore(d, r.eventLogs[i].record)
		if err != nil {
			r.err = err
			return
		}
		r.legs = append(r.legs, l)
	}
}

// storedState returns a leg's state after encoding and decoding.
func storedState(t testing.TB, l *sip.Leg) (d sip.DialogState) {
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
func restartServer(t testing.TB, old *testServer, states ...sip.DialogState) *restartedServer {
	t.Helper()
	addr := old.Addr().String()
	old.Close()
	r := &restartedServer{states: states, testServer: testServer{calls: make(chan *sip.Inbound, 16)}}
	for range states {
		r.eventLogs = append(r.eventLogs, newEventLog())
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
func answerReinvites(e eventLog, done chan<- sip.Event) {
	for ev := range e {
		if re, ok := ev.(sip.Reinvite); ok {
			re.Respond(200, testAnswerSDP)
			continue
		}
		done <- ev
	}
}

func TestRestore_CallsSurviveRestart(t *testing.T) {
	t.Parallel()
	for _, transport := range bothTransports {
		for _, hangUp := range []string{"we", "they"} {
			t.Run(string(transport)+"/"+hangUp, func(t *testing.T) {
				t.Parallel()
				alice, bob, server := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
				caller, ours, a, _ := answeredCall(t, alice, server, transport)
				theirs, callee, _, b := answeredCall(t, server, bob, transport)
				r := restartServer(t, server, storedState(t, ours), storedState(t, theirs))
				for i, far := range []struct {
					leg *sip.Leg
					e   eventLog
				}{{caller, a}, {callee, b}} {
					leg, on, ended := r.legs[i], r.eventLogs[i], make(chan sip.Event, 4)
					go answerReinvites(far.e, ended)
					if got, err := leg.Reinvite(testContext(t), testOfferSDP); err != nil || !bytes.Equal(got, testAnswerSDP) {
						t.Fatalf("leg %d: our re-INVITE: %q, %v", i, got, err)
					}
					answered := make(chan bool)
					go func() {
						(<-on).(sip.Reinvite).Respond(200, testAnswerSDP)
						close(answered)
					}()
					if _, err := far.leg.Reinvite(testContext(t), testOfferSDP); err != nil {
						t.Fatalf("leg %d: their re-INVITE: %v", i, err)
					}
					<-answered
					if hangUp == "they" {
						far.leg.Bye(sip.Reason{})
						wantEvent[sip.Bye](t, on)
						continue
					}
					leg.Bye(sip.Reason{Q850: 16})
					if bye, ok := (<-ended).(sip.Bye); !ok || bye.Q850 != 16 {
						t.Errorf("leg %d ends with %+v", i, bye)
					}
					wantEvent[sip.Closed](t, on)
				}
				waitUntil(t, "no dialog left", func() bool { n := r.Stats(); return n.Dialogs == 0 && n.Calls == 0 })
			})
		}
	}
}

func TestRestore_HigherCSeq(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEventLog()
	p.sendRequest("INVITE", "al", "c1", 1, "Record-Route: <sip:"+p.conn.LocalAddr().String()+";lr>\n")
	in := server.wantInbound(t)
	in.Listen(e.record)
	in.Answer(testOfferSDP)
	ok := p.wantMessage("SIP/2.0 200")
	dialog := "From: " + headerValue(ok, "From") + "\nTo: " + headerValue(ok, "To") + "\nCall-ID: c1\n"
	p.sendInDialog("ACK", dialog, 1, "", "")
	wantEvent[sip.Acked](t, e)
	go in.Leg().Info(testContext(t), "text/plain", []byte("x"))
	before := 0
	info := p.wantMessage("INFO ")
	fmt.Sscan(headerValue(info, "CSeq"), &before)
	d := storedState(t, in.Leg())
	p.respond(info, 200, "", "")
	r := restartServer(t, server, d)
	r.legs[0].Bye(sip.Reason{})
	bye, after := p.wantMessage("BYE "), 0
	fmt.Sscan(headerValue(bye, "CSeq"), &after)
	if after < before+100 || headerValue(bye, "Route") == "" || headerValue(bye, "From") != headerValue(ok, "To") ||
		headerValue(bye, "To") != headerValue(ok, "From") || !strings.HasPrefix(bye, "BYE sip:al@") {
		t.Errorf("before %d:\n%s", before, bye)
	}
	p.respond(bye, 200, "", "")
	wantEvent[sip.Closed](t, r.eventLogs[0])
}

func TestRestore_OnlyAnsweredDialogs(t *testing.T) {
	t.Parallel()
	pa, pb := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
	a, b := newEventLog(), newEventLog()
	leg := placeCall(t, pa, pb, sipmsg.UDP, testOfferSDP, a)
	in := pb.wantInbound(t)
	in.Listen(b.record)
	if d := leg.Snapshot(); d.CallID != "" {
		t.Errorf("a call nobody has answered has the state %+v", d)
	}
	early := in.Leg().Snapshot()
	in.Answer(testAnswerSDP)
	wantEvent[sip.Answered](t, a)
	wantEvent[sip.Acked](t, b)
	d := storedState(t, in.Leg())
	if early.CallID != d.CallID || early.LocalTag != d.LocalTag || early.Target != d.Target {
		t.Errorf("before the answer the state was %+v, after it %+v", early, d)
	}
	if _, err := pa.Restore(sip.DialogState{}, a.record); err == nil {
		t.Error("nothing is restored")
	}
	again := newEventLog()
	if _, err := pb.Restore(d, again.record); err != nil {
		t.Fatal(err)
	}
	wantEvent[sip.Lost](t, again) // the dialog already exists here
	leg.Bye(sip.Reason{})
	wantEvent[sip.Bye](t, b)
	waitUntil(t, "the leg is over", func() bool { return in.Leg().Snapshot().CallID == "" })
}

func TestRestore_AnswersChallenge(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEventLog()
	p.sendRequest("INVITE", "al", "c1", 1, "")
	in := server.wantInbound(t)
	in.Listen(e.record)
	in.Answer(testOfferSDP)
	ok := p.wantMessage("SIP/2.0 200")
	p.sendInDialog("ACK", "From: "+headerValue(ok, "From")+"\nTo: "+headerValue(ok, "To")+"\nCall-ID: c1\n", 1, "", "")
	wantEvent[sip.Acked](t, e)
	d := storedState(t, in.Leg())
	d.Credentials, d.Realms = digest.Credentials{Username: "al", Password: "secret"}, []string{"r"}
	r := restartServer(t, server, d)
	r.legs[0].Bye(sip.Reason{})
	p.respond(p.wantMessage("BYE "), 407, "one", "Proxy-Authenticate: Digest realm=\"r\", nonce=\"n\"\n")
	again := p.wantMessage("BYE ")
	if !strings.Contains(headerValue(again, "Proxy-Authorization"), `username="al", realm="r", nonce="n"`) {
		t.Errorf("asked for a password, it says %s", again)
	}
	p.respond(again, 200, "one", "")
	wantEvent[sip.Closed](t, r.eventLogs[0])
}

func TestSnapshot_HoldsNoPassword(t *testing.T) {
	t.Parallel()
	b, _ := json.Marshal(sip.DialogState{Credentials: digest.Credentials{Username: "al", Password: "secret"}})
	if bytes.Contains(b, []byte("secret")) {
		t.Errorf("kept: %s", b)
	}
}

func TestRebind_NewAddress(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	before, after, e := newPeer(t, "udp", server), newPeer(t, "udp", server), newEventLog()
	at := func(p *peer) sip.Binding {
		return sip.Binding{Contact: "sip:al@phone.invalid", Transport: sipmsg.UDP,
			Source: netip.MustParseAddrPort(p.conn.LocalAddr().String())}
	}
	first := at(before)
	leg, err := server.Server.Invite(testContext(t), sip.Outgoing{Binding: &first, SDP: testOfferSDP}, e.record)
	if err != nil {
		t.Fatal(err)
	}
	before.respond(before.wantMessage("INVITE "), 200, "one", "")
	before.wantMessage("ACK ")
	wantEvent[sip.Answered](t, e)
	leg.Rebind(at(after))
	leg.Bye(sip.Reason{})
	after.respond(after.wantMessage("BYE sip:al@phone.invalid "), 200, "", "")
	wantEvent[sip.Closed](t, e)
}
