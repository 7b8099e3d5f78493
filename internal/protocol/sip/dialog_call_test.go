package sip_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/resolve"
	"soniq/internal/protocol/sip/sipmsg"
)

// newAnsweredCall makes a call between two servers and answers it.
func newAnsweredCall(t testing.TB, transport sipmsg.Transport) (caller, callee *sip.Leg, a, b eventLog) {
	t.Helper()
	pa, pb := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
	return answeredCall(t, pa, pb, transport)
}

func answeredCall(t testing.TB, pa, pb *testServer, transport sipmsg.Transport) (caller, callee *sip.Leg, a, b eventLog) {
	t.Helper()
	a, b = newEventLog(), newEventLog()
	caller = placeCall(t, pa, pb, transport, testOfferSDP, a)
	in := pb.wantInbound(t)
	in.Listen(b.record)
	if err := in.Answer(testAnswerSDP); err != nil {
		t.Fatal(err)
	}
	wantEvent[sip.Answered](t, a)
	wantEvent[sip.Acked](t, b)
	return caller, in.Leg(), a, b
}

func placeCall(t testing.TB, from, to *testServer, transport sipmsg.Transport, sdp []byte, on eventLog) *sip.Leg {
	t.Helper()
	leg, err := from.Server.Invite(context.Background(), sip.Outgoing{
		URI: to.uri("bob"), NextHop: resolve.Target{Host: to.Addr().String(), Transport: transport},
		From: sipmsg.Address{Display: `Al "x" Ice`, URI: sipmsg.URI{User: "alice"}}, SDP: sdp,
	}, on.record)
	if err != nil {
		t.Fatal(err)
	}
	return leg
}

var bothTransports = []sipmsg.Transport{sipmsg.UDP, sipmsg.TCP}

func TestCall_RingAnswerHangUp(t *testing.T) {
	t.Parallel()
	for _, transport := range bothTransports {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			pa, pb := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
			a, b := newEventLog(), newEventLog()
			leg := placeCall(t, pa, pb, transport, testOfferSDP, a)
			in := pb.wantInbound(t)
			in.Listen(b.record)
			if !bytes.Equal(in.Offer, testOfferSDP) || in.From.Display != `Al "x" Ice` || in.From.URI.User != "alice" ||
				in.RequestURI.User != "bob" || in.Transport != transport || in.CallID != leg.CallID() {
				t.Errorf("inbound call reads %+v", in)
			}
			in.Ring(183, testAnswerSDP)
			if p := wantEvent[sip.Provisional](t, a); p.Status != 183 || !bytes.Equal(p.SDP, testAnswerSDP) {
				t.Errorf("got %+v, want 183 with SDP", p)
			}
			if err := in.Answer(testAnswerSDP); err != nil {
				t.Fatal(err)
			}
			if got := wantEvent[sip.Answered](t, a); !bytes.Equal(got.SDP, testAnswerSDP) {
				t.Errorf("answer reads %q", got.SDP)
			}
			if got := wantEvent[sip.Acked](t, b); got.SDP != nil {
				t.Errorf("ACK of an early offer carries %q", got.SDP)
			}
			leg.Bye(sip.Reason{Q850: 16, Text: "done"})
			wantEvent[sip.Closed](t, a)
			if bye := wantEvent[sip.Bye](t, b); bye.Q850 != 16 || bye.Reason != "done" {
				t.Errorf("got %+v, want cause 16, done", bye)
			}
			wantNoEvent(t, a)
			wantNoEvent(t, b)
		})
	}
}

func TestCall_CalleeHangsUp(t *testing.T) {
	t.Parallel()
	for _, transport := range bothTransports {
		_, callee, a, b := newAnsweredCall(t, transport)
		callee.Bye(sip.Reason{})
		wantEvent[sip.Bye](t, a)
		wantEvent[sip.Closed](t, b)
	}
}

func TestCall_Rejected(t *testing.T) {
	t.Parallel()
	pa, pb := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
	a, b := newEventLog(), newEventLog()
	placeCall(t, pa, pb, sipmsg.UDP, testOfferSDP, a)
	in := pb.wantInbound(t)
	in.Listen(func(e sip.Event) {
		if err := in.Answer(testAnswerSDP); !errors.Is(err, sip.ErrLegEnded) {
			t.Errorf("answering while told of %T: %v, want ErrOver", e, err)
		}
		b.record(e)
	})
	in.Reject(486, "", 7*time.Second)
	if f := wantEvent[sip.Failed](t, a); f.Status != 486 || f.RetryAfter != 7 || f.Reason != "Busy Here" {
		t.Errorf("got %+v, want 486 Busy Here, retry after 7", f)
	}
	wantEvent[sip.Closed](t, b)
	if err := in.Answer(testAnswerSDP); !errors.Is(err, sip.ErrLegEnded) {
		t.Errorf("answering a rejected call: %v, want ErrOver", err)
	}
}

func TestCall_CancelWhileRinging(t *testing.T) {
	t.Parallel()
	for _, transport := range bothTransports {
		pa, pb := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
		a, b := newEventLog(), newEventLog()
		leg := placeCall(t, pa, pb, transport, testOfferSDP, a)
		in := pb.wantInbound(t)
		in.Listen(b.record)
		in.Ring(180, nil)
		wantEvent[sip.Provisional](t, a)
		leg.Cancel()
		if f := wantEvent[sip.Failed](t, a); f.Status != 487 {
			t.Errorf("got %+v, want 487", f)
		}
		wantEvent[sip.Canceled](t, b)
		wantNoEvent(t, a)
	}
}

// https://github.com/asterisk/asterisk/issues/116
func TestCall_ReasonOfCancel(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"", sip.CompletedElsewhere, `Q.850;cause=16, SIP;cause=487;text="a, b"`} {
		for _, ring := range []bool{true, false} { // without ringing, the CANCEL waits for the first response
			pa, pb := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
			a, b := newEventLog(), newEventLog()
			leg := placeCall(t, pa, pb, sipmsg.UDP, testOfferSDP, a)
			in := pb.wantInbound(t)
			in.Listen(b.record)
			if ring {
				in.Ring(180, nil)
				wantEvent[sip.Provisional](t, a)
			}
			leg.Bye(sip.Reason{Q850: 16, Cancel: reason})
			if c := wantEvent[sip.Canceled](t, b); c.Reason != reason {
				t.Errorf("Reason %q, want %q", c.Reason, reason)
			}
		}
	}
}

func TestLateOffer_AnsweredInACK(t *testing.T) {
	t.Parallel()
	pa, pb := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
	a, b := newEventLog(), newEventLog()
	leg := placeCall(t, pa, pb, sipmsg.UDP, nil, a)
	in := pb.wantInbound(t)
	if in.Offer != nil {
		t.Fatalf("late offer carries %q", in.Offer)
	}
	in.Listen(b.record)
	in.Answer(testOfferSDP)
	if got := wantEvent[sip.Answered](t, a); !bytes.Equal(got.SDP, testOfferSDP) {
		t.Errorf("offer reads %q", got.SDP)
	}
	leg.Ack(testAnswerSDP)
	if got := wantEvent[sip.Acked](t, b); !bytes.Equal(got.SDP, testAnswerSDP) {
		t.Errorf("answer in ACK reads %q", got.SDP)
	}
	leg.Bye(sip.Reason{})
	wantEvent[sip.Bye](t, b)
}

func TestReinvite_BothDirections(t *testing.T) {
	t.Parallel()
	caller, callee, a, b := newAnsweredCall(t, sipmsg.UDP)
	hold := func(from *sip.Leg, other eventLog) {
		t.Helper()
		go func() {
			re := (<-other).(sip.Reinvite)
			if !bytes.Equal(re.SDP, testOfferSDP) {
				t.Errorf("re-offer reads %q", re.SDP)
			}
			re.Respond(200, testAnswerSDP)
		}()
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		defer cancel()
		got, err := from.Reinvite(ctx, testOfferSDP)
		if err != nil || !bytes.Equal(got, testAnswerSDP) {
			t.Fatalf("reinvite: %q, %v", got, err)
		}
	}
	hold(caller, b)
	hold(callee, a)
	hold(caller, b)
	caller.Bye(sip.Reason{})
	wantEvent[sip.Closed](t, a)
	wantEvent[sip.Bye](t, b)
}

func TestReinvite_RefusedKeepsCall(t *testing.T) {
	t.Parallel()
	caller, callee, a, b := newAnsweredCall(t, sipmsg.UDP)
	go func() { (<-b).(sip.Reinvite).Respond(488, nil) }()
	_, err := caller.Reinvite(context.Background(), testOfferSDP)
	var status *sip.StatusError
	if !errors.As(err, &status) || status.Status != 488 {
		t.Fatalf("got %v, want 488", err)
	}
	callee.Bye(sip.Reason{})
	wantEvent[sip.Bye](t, a)
	wantEvent[sip.Closed](t, b)
}

func TestReinvite_GlareBothSucceed(t *testing.T) {
	t.Parallel()
	caller, callee, a, b := newAnsweredCall(t, sipmsg.UDP)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, e := range []eventLog{a, b} {
		go func() {
			for ev := range e {
				if re, ok := ev.(sip.Reinvite); ok {
					re.Respond(200, testAnswerSDP)
				}
			}
		}()
	}
	results := make(chan error, 2)
	for _, l := range []*sip.Leg{caller, callee} {
		go func() {
			_, err := l.Reinvite(ctx, testOfferSDP)
			results <- err
		}()
	}
	for range 2 {
		if err := <-results; err != nil {
			t.Errorf("crossing re-INVITE: %v", err)
		}
	}
}

func TestInfo_DeliveredAndAnswered(t *testing.T) {
	t.Parallel()
	caller, _, _, b := newAnsweredCall(t, sipmsg.TCP)
	go func() {
		i := (<-b).(sip.Info)
		if i.ContentType != "application/dtmf-relay" || string(i.Body) != "Signal=5\r\n" {
			t.Errorf("got %q %q", i.ContentType, i.Body)
		}
		i.Respond(200)
	}()
	if err := caller.Info(context.Background(), "application/dtmf-relay", []byte("Signal=5\r\n")); err != nil {
		t.Fatal(err)
	}
}

func TestEvents_BeforeListenAreKept(t *testing.T) {
	t.Parallel()
	pa, pb := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
	a, b := newEventLog(), newEventLog()
	leg := placeCall(t, pa, pb, sipmsg.UDP, testOfferSDP, a)
	in := pb.wantInbound(t)
	in.Ring(180, nil)
	wantEvent[sip.Provisional](t, a)
	leg.Cancel()
	wantEvent[sip.Failed](t, a)
	in.Listen(b.record)
	wantEvent[sip.Canceled](t, b)
}

func TestCall_RefusedConnectionFails503(t *testing.T) {
	t.Parallel()
	pa, pb := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
	pb.Close()
	a := newEventLog()
	placeCall(t, pa, pb, sipmsg.TCP, testOfferSDP, a)
	if f := wantEvent[sip.Failed](t, a); f.Status != 503 {
		t.Errorf("got %+v, want 503 for a refused connection", f)
	}
}

func TestDrain_RefusesNewCallsOnly(t *testing.T) {
	t.Parallel()
	pa, pb := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
	caller, _, _, b := answeredCall(t, pa, pb, sipmsg.UDP)
	pb.Drain()
	ping := newPeer(t, "udp", pb)
	ping.sendRequest("OPTIONS", "edge", "ping", 1, "")
	ping.wantMessage("SIP/2.0 503") // a proxy in front sends calls elsewhere
	refused := newEventLog()
	placeCall(t, pa, pb, sipmsg.UDP, testOfferSDP, refused)
	if f := wantEvent[sip.Failed](t, refused); f.Status != 503 || f.RetryAfter == 0 {
		t.Errorf("got %+v, want 503 with Retry-After", f)
	}
	caller.Bye(sip.Reason{})
	wantEvent[sip.Bye](t, b)
}

func TestClose_EndsLegs(t *testing.T) {
	t.Parallel()
	pa, pb := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
	_, _, _, b := answeredCall(t, pa, pb, sipmsg.UDP)
	pb.Close()
	wantEvent[sip.Lost](t, b)
	if err := pb.Close(); err != nil {
		t.Error(err)
	}
}

func TestReinvite_EndedByBye(t *testing.T) {
	t.Parallel()
	caller, callee, a, b := newAnsweredCall(t, sipmsg.UDP)
	result := make(chan error, 1)
	go func() {
		_, err := caller.Reinvite(context.Background(), testOfferSDP)
		result <- err
	}()
	wantEvent[sip.Reinvite](t, b)
	callee.Bye(sip.Reason{})
	wantEvent[sip.Bye](t, a)
	wantEvent[sip.Closed](t, b)
	select {
	case err := <-result:
		if err == nil {
			t.Error("the re-INVITE succeeded")
		}
	case <-time.After(testTimeout):
		t.Error("Reinvite still waits")
	}
}

func TestInvite_LargeGoesByTCP(t *testing.T) {
	t.Parallel()
	pa, pb := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
	large := append(bytes.Clone(testOfferSDP), bytes.Repeat([]byte("a=x:0123456789\r\n"), 80)...)
	a := newEventLog()
	leg := placeCall(t, pa, pb, sipmsg.UDP, large, a)
	in := pb.wantInbound(t)
	if in.Transport != sipmsg.TCP || !bytes.Equal(in.Offer, large) {
		t.Errorf("it came over %s with %d bytes of %d", in.Transport, len(in.Offer), len(large))
	}
	b := newEventLog()
	in.Listen(b.record)
	in.Answer(testAnswerSDP)
	wantEvent[sip.Answered](t, a)
	wantEvent[sip.Acked](t, b)
	leg.Bye(sip.Reason{})
	wantEvent[sip.Bye](t, b)
}

func TestInvite_LargeFallsBackToUDP(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEventLog() // its port is closed for TCP
	large := append(bytes.Clone(testOfferSDP), bytes.Repeat([]byte("a=x:0123456789\r\n"), 80)...)
	_, err := server.Server.Invite(context.Background(), sip.Outgoing{
		URI: "sip:bob@example.com", NextHop: resolve.Target{Host: p.conn.LocalAddr().String()}, SDP: large,
	}, e.record)
	if err != nil {
		t.Fatal(err)
	}
	p.respond(p.wantMessage("INVITE "), 486, "one", "")
	if f := wantEvent[sip.Failed](t, e); f.Status != 486 {
		t.Errorf("got %+v, want 486", f)
	}
}
