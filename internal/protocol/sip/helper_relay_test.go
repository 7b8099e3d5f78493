package sip_test

import (
	"context"
	"net/netip"
	"testing"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
)

// testRelay is a minimal switch: every call goes to one next hop, with SDP unchanged. One goroutine per call handles
// the events of both legs.
type testRelay struct {
	*sip.Server
	next string
}

func newTestRelay(t testing.TB, c sip.Config, next string) *testRelay {
	t.Helper()
	r := &testRelay{next: next}
	s, err := sip.Listen(context.Background(), c, r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := s.Stats().Panics; n > 0 {
			t.Errorf("%d panics were recovered", n)
		}
		s.Close()
	})
	return r
}

// Serve is called before the first call.
func (r *testRelay) Serve(s *sip.Server) { r.Server = s }

// relayEvent is an event and the leg that reported it.
type relayEvent struct {
	ev     sip.Event
	caller bool
}

func (r *testRelay) Invite(ctx context.Context, in *sip.Inbound) {
	inbox := make(chan relayEvent, 32)
	in.Listen(func(e sip.Event) { inbox <- relayEvent{e, true} })
	to := in.RequestURI
	hop, _ := netip.ParseAddrPort(r.next)
	to.Host, to.Port, to.Params = hop.Addr().String(), int(hop.Port()), ""
	out, err := r.Server.Invite(ctx, sip.Outgoing{
		URI: to.String(), From: sipmsg.Address{Display: in.From.Display, URI: sipmsg.URI{User: in.From.URI.User}},
		SDP: in.Offer, MaxForwards: in.MaxForwards - 1,
	}, func(e sip.Event) { inbox <- relayEvent{e, false} })
	if err != nil {
		in.Reject(500, "", 0)
		return
	}
	b := &bridge{in: in, a: in.Leg(), b: out}
	for b.ended < 2 {
		select {
		case s := <-inbox:
			b.event(ctx, s)
		case <-ctx.Done():
			return
		}
	}
}

type bridge struct {
	in    *sip.Inbound
	a, b  *sip.Leg
	ended int
}

func (b *bridge) event(ctx context.Context, s relayEvent) {
	other := b.a
	if s.caller {
		other = b.b
	}
	switch e := s.ev.(type) {
	case sip.Provisional:
		b.in.Ring(e.Status, e.SDP)
	case sip.Answered:
		b.in.Answer(e.SDP)
	case sip.Acked:
		if e.SDP != nil {
			b.b.Ack(e.SDP)
		}
	case sip.Failed:
		b.ended++
		b.in.Reject(e.Status, e.Reason, 0)
	case sip.Canceled, sip.Bye, sip.Lost:
		b.ended++
		other.Bye(sip.Reason{})
	case sip.Closed:
		b.ended++
	case sip.Refer:
		e.Respond(202)
		e.Notify(200, "OK")
	case sip.Reinvite:
		go func() {
			sdp, err := other.Reinvite(ctx, e.SDP)
			if err != nil {
				e.Respond(488, nil)
				return
			}
			e.Respond(200, sdp)
		}()
	}
}
