package sip_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
)

// newAnsweredCall makes a call between two servers and answers it.
func connected(t testing.TB, transport sip.Transport) (caller, callee *sip.Leg, a, b events) {
	t.Helper()
	pa, pb := listen(t, sip.Config{}), listen(t, sip.Config{})
	return connect(t, pa, pb, transport)
}

func connect(t testing.TB, pa, pb *phone, transport sip.Transport) (caller, callee *sip.Leg, a, b events) {
	t.Helper()
	a, b = newEvents(), newEvents()
	caller = place(t, pa, pb, transport, offerSDP, a)
	in := pb.incoming(t)
	in.Listen(b.on)
	if err := in.Answer(answerSDP); err != nil {
		t.Fatal(err)
	}
	want[sip.Answered](t, a)
	want[sip.Acked](t, b)
	return caller, in.Leg(), a, b
}

func place(t testing.TB, from, to *phone, transport sip.Transport, sdp []byte, on events) *sip.Leg {
	t.Helper()
	leg, err := from.Server.Invite(context.Background(), sip.Outgoing{
		URI: to.uri("bob"), NextHop: sip.Target{Host: to.Addr().String(), Transport: transport},
		From: sip.Address{Display: `Al "x" Ice`, URI: sip.URI{User: "alice"}}, SDP: sdp,
	}, on.on)
	if err != nil {
		t.Fatal(err)
	}
	return leg
}

var bothTransports = []sip.Transport{sip.UDP, sip.TCP}

func TestCallRingsIsAnsweredAndHungUp(t *testing.T) {
	t.Parallel()
	for _, transport := range bothTransports {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			pa, pb := listen(t, sip.Config{}), listen(t, sip.Config{})
			a, b := newEvents(), newEvents()
			leg := place(t, pa, pb, transport, offerSDP, a)
			in := pb.incoming(t)
			in.Listen(b.on)
			if !bytes.Equal(in.Offer, offerSDP) || in.From.Display != `Al "x" Ice` || in.From.URI.User != "alice" ||
				in.RequestURI.User != "bob" || in.Transport != transport || in.CallID != leg.CallID() {
				t.Errorf("inbound call reads %+v", in)
			}
			in.Ring(183, answerSDP)
			if p := want[sip.Provisional](t, a); p.Status != 183 || !bytes.Equal(p.SDP, answerSDP) {
				t.Errorf("got %+v, want 183 with SDP", p)
			}
			if err := in.Answer(answerSDP); err != nil {
				t.Fatal(err)
			}
			if got := want[sip.Answered](t, a); !bytes.Equal(got.SDP, answerSDP) {
				t.Errorf("answer reads %q", got.SDP)
			}
			if got := want[sip.Acked](t, b); got.SDP != nil {
				t.Errorf("ACK of an early offer carries %q", got.SDP)
			}
			leg.Bye(sip.Reason{Q850: 16, Text: "done"})
			want[sip.Closed](t, a)
			if bye := want[sip.Bye](t, b); bye.Q850 != 16 || bye.Reason != "done" {
				t.Errorf("got %+v, want cause 16, done", bye)
			}
			none(t, a)
			none(t, b)
		})
	}
}

func TestCalleeHangsUp(t *testing.T) {
	t.Parallel()
	for _, transport := range bothTransports {
		_, callee, a, b := connected(t, transport)
		callee.Bye(sip.Reason{})
		want[sip.Bye](t, a)
		want[sip.Closed](t, b)
	}
}

func TestRejectionReachesTheCaller(t *testing.T) {
	t.Parallel()
	pa, pb := listen(t, sip.Config{}), listen(t, sip.Config{})
	a, b := newEvents(), newEvents()
	place(t, pa, pb, sip.UDP, offerSDP, a)
	in := pb.incoming(t)
	in.Listen(func(e sip.Event) {
		if err := in.Answer(answerSDP); !errors.Is(err, sip.ErrOver) {
			t.Errorf("answering while told of %T: %v, want ErrOver", e, err)
		}
		b.on(e)
	})
	in.Reject(486, "", 7*time.Second)
	if f := want[sip.Failed](t, a); f.Status != 486 || f.RetryAfter != 7 || f.Reason != "Busy Here" {
		t.Errorf("got %+v, want 486 Busy Here, retry after 7", f)
	}
	want[sip.Closed](t, b)
	if err := in.Answer(answerSDP); !errors.Is(err, sip.ErrOver) {
		t.Errorf("answering a rejected call: %v, want ErrOver", err)
	}
}

func TestCancelWhileRinging(t *testing.T) {
	t.Parallel()
	for _, transport := range bothTransports {
		pa, pb := listen(t, sip.Config{}), listen(t, sip.Config{})
		a, b := newEvents(), newEvents()
		leg := place(t, pa, pb, transport, offerSDP, a)
		in := pb.incoming(t)
		in.Listen(b.on)
		in.Ring(180, nil)
		want[sip.Provisional](t, a)
		leg.Cancel()
		if f := want[sip.Failed](t, a); f.Status != 487 {
			t.Errorf("got %+v, want 487", f)
		}
		want[sip.Canceled](t, b)
		none(t, a)
	}
}

func TestLateOfferIsAnsweredInTheACK(t *testing.T) {
	t.Parallel()
	pa, pb := listen(t, sip.Config{}), listen(t, sip.Config{})
	a, b := newEvents(), newEvents()
	leg := place(t, pa, pb, sip.UDP, nil, a)
	in := pb.incoming(t)
	if in.Offer != nil {
		t.Fatalf("late offer carries %q", in.Offer)
	}
	in.Listen(b.on)
	in.Answer(offerSDP)
	if got := want[sip.Answered](t, a); !bytes.Equal(got.SDP, offerSDP) {
		t.Errorf("offer reads %q", got.SDP)
	}
	leg.Ack(answerSDP)
	if got := want[sip.Acked](t, b); !bytes.Equal(got.SDP, answerSDP) {
		t.Errorf("answer in ACK reads %q", got.SDP)
	}
	leg.Bye(sip.Reason{})
	want[sip.Bye](t, b)
}

func TestReinviteBothWays(t *testing.T) {
	t.Parallel()
	caller, callee, a, b := connected(t, sip.UDP)
	hold := func(from *sip.Leg, other events) {
		t.Helper()
		go func() {
			re := (<-other).(sip.Reinvite)
			if !bytes.Equal(re.SDP, offerSDP) {
				t.Errorf("re-offer reads %q", re.SDP)
			}
			re.Respond(200, answerSDP)
		}()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		got, err := from.Reinvite(ctx, offerSDP)
		if err != nil || !bytes.Equal(got, answerSDP) {
			t.Fatalf("reinvite: %q, %v", got, err)
		}
	}
	hold(caller, b)
	hold(callee, a)
	hold(caller, b)
	caller.Bye(sip.Reason{})
	want[sip.Closed](t, a)
	want[sip.Bye](t, b)
}

func TestRefusedReinviteKeepsTheCall(t *testing.T) {
	t.Parallel()
	caller, callee, a, b := connected(t, sip.UDP)
	go func() { (<-b).(sip.Reinvite).Respond(488, nil) }()
	_, err := caller.Reinvite(context.Background(), offerSDP)
	var status *sip.StatusError
	if !errors.As(err, &status) || status.Status != 488 {
		t.Fatalf("got %v, want 488", err)
	}
	callee.Bye(sip.Reason{})
	want[sip.Bye](t, a)
	want[sip.Closed](t, b)
}

func TestCrossingReinvitesBothSucceed(t *testing.T) {
	t.Parallel()
	caller, callee, a, b := connected(t, sip.UDP)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, e := range []events{a, b} {
		go func() {
			for ev := range e {
				if re, ok := ev.(sip.Reinvite); ok {
					re.Respond(200, answerSDP)
				}
			}
		}()
	}
	results := make(chan error, 2)
	for _, l := range []*sip.Leg{caller, callee} {
		go func() {
			_, err := l.Reinvite(ctx, offerSDP)
			results <- err
		}()
	}
	for range 2 {
		if err := <-results; err != nil {
			t.Errorf("crossing re-INVITE: %v", err)
		}
	}
}

func TestInfoIsDeliveredAndAnswered(t *testing.T) {
	t.Parallel()
	caller, _, _, b := connected(t, sip.TCP)
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

func TestEventsBeforeListenAreKept(t *testing.T) {
	t.Parallel()
	pa, pb := listen(t, sip.Config{}), listen(t, sip.Config{})
	a, b := newEvents(), newEvents()
	leg := place(t, pa, pb, sip.UDP, offerSDP, a)
	in := pb.incoming(t)
	in.Ring(180, nil)
	want[sip.Provisional](t, a)
	leg.Cancel()
	want[sip.Failed](t, a)
	in.Listen(b.on)
	want[sip.Canceled](t, b)
}

func TestNothingListeningFails408(t *testing.T) {
	t.Parallel()
	pa, pb := listen(t, sip.Config{}), listen(t, sip.Config{})
	pb.Close()
	a := newEvents()
	place(t, pa, pb, sip.TCP, offerSDP, a)
	if f := want[sip.Failed](t, a); f.Status != 503 {
		t.Errorf("got %+v, want 503 for a refused connection", f)
	}
}

func TestDrainRefusesNewCallsOnly(t *testing.T) {
	t.Parallel()
	pa, pb := listen(t, sip.Config{}), listen(t, sip.Config{})
	caller, _, _, b := connect(t, pa, pb, sip.UDP)
	pb.Drain()
	ping := newPeer(t, "udp", pb)
	ping.ask("OPTIONS", "edge", "ping", 1, "")
	ping.expect("SIP/2.0 503") // a proxy in front sends calls elsewhere
	refused := newEvents()
	place(t, pa, pb, sip.UDP, offerSDP, refused)
	if f := want[sip.Failed](t, refused); f.Status != 503 || f.RetryAfter == 0 {
		t.Errorf("got %+v, want 503 with Retry-After", f)
	}
	caller.Bye(sip.Reason{})
	want[sip.Bye](t, b)
}

func TestCloseEndsLegs(t *testing.T) {
	t.Parallel()
	pa, pb := listen(t, sip.Config{}), listen(t, sip.Config{})
	_, _, _, b := connect(t, pa, pb, sip.UDP)
	pb.Close()
	want[sip.Lost](t, b)
	if err := pb.Close(); err != nil {
		t.Error(err)
	}
}

func TestHangUpEndsAPendingReinvite(t *testing.T) {
	t.Parallel()
	caller, callee, a, b := connected(t, sip.UDP)
	result := make(chan error, 1)
	go func() {
		_, err := caller.Reinvite(context.Background(), offerSDP)
		result <- err
	}()
	want[sip.Reinvite](t, b)
	callee.Bye(sip.Reason{})
	want[sip.Bye](t, a)
	want[sip.Closed](t, b)
	select {
	case err := <-result:
		if err == nil {
			t.Error("the re-INVITE succeeded")
		}
	case <-time.After(patience):
		t.Error("Reinvite still waits")
	}
}

func TestLargeInviteGoesByTCP(t *testing.T) {
	t.Parallel()
	pa, pb := listen(t, sip.Config{}), listen(t, sip.Config{})
	large := append(bytes.Clone(offerSDP), bytes.Repeat([]byte("a=x:0123456789\r\n"), 80)...)
	a := newEvents()
	leg := place(t, pa, pb, sip.UDP, large, a)
	in := pb.incoming(t)
	if in.Transport != sip.TCP || !bytes.Equal(in.Offer, large) {
		t.Errorf("it came over %s with %d bytes of %d", in.Transport, len(in.Offer), len(large))
	}
	b := newEvents()
	in.Listen(b.on)
	in.Answer(answerSDP)
	want[sip.Answered](t, a)
	want[sip.Acked](t, b)
	leg.Bye(sip.Reason{})
	want[sip.Bye](t, b)
}

func TestLargeInviteFallsBackToUDP(t *testing.T) {
	t.Parallel()
	server := listen(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEvents() // its port is closed for TCP
	large := append(bytes.Clone(offerSDP), bytes.Repeat([]byte("a=x:0123456789\r\n"), 80)...)
	_, err := server.Server.Invite(context.Background(), sip.Outgoing{
		URI: "sip:bob@example.com", NextHop: sip.Target{Host: p.conn.LocalAddr().String()}, SDP: large,
	}, e.on)
	if err != nil {
		t.Fatal(err)
	}
	p.answer(p.expect("INVITE "), 486, "one", "")
	if f := want[sip.Failed](t, e); f.Status != 486 {
		t.Errorf("got %+v, want 486", f)
	}
}
