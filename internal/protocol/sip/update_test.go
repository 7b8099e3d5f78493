package sip_test

import (
	"bytes"
	"errors"
	"testing"

	"soniq/internal/protocol/sip"
)

func TestUpdateMakesOffersBothWays(t *testing.T) {
	t.Parallel()
	for _, transport := range bothTransports {
		caller, callee, a, b := connected(t, transport)
		for _, side := range []struct {
			leg   *sip.Leg
			other events
		}{{caller, b}, {callee, a}, {caller, b}} {
			go func() {
				re := (<-side.other).(sip.Reinvite)
				if !bytes.Equal(re.SDP, offerSDP) || re.Early {
					t.Errorf("offer reads %q, early %v", re.SDP, re.Early)
				}
				re.Respond(200, answerSDP)
			}()
			got, err := side.leg.Update(within(t), offerSDP)
			if err != nil || !bytes.Equal(got, answerSDP) {
				t.Fatalf("update: %q, %v", got, err)
			}
		}
		caller.Bye(sip.Reason{})
		want[sip.Bye](t, b)
	}
}

func TestRefusedUpdateKeepsTheCall(t *testing.T) {
	t.Parallel()
	caller, _, _, b := connected(t, sip.UDP)
	go func() { (<-b).(sip.Reinvite).Respond(488, nil) }()
	_, err := caller.Update(within(t), offerSDP)
	var status *sip.StatusError
	if !errors.As(err, &status) || status.Status != 488 {
		t.Fatalf("got %v, want 488", err)
	}
	caller.Bye(sip.Reason{})
	want[sip.Bye](t, b)
}

func TestUpdateNeedsTheOthersConsent(t *testing.T) {
	t.Parallel()
	server, e := listen(t, sip.Config{}), newEvents()
	p := newPeer(t, "udp", server)
	p.ask("INVITE", "al", "c1", 1, "") // no Allow
	in := server.incoming(t)
	in.Listen(e.on)
	in.Answer(offerSDP)
	ok := p.expect("SIP/2.0 200")
	p.inside("ACK", "From: "+headerOf(ok, "From")+"\nTo: "+headerOf(ok, "To")+"\nCall-ID: c1\n", 1, "", "")
	want[sip.Acked](t, e)
	if _, err := in.Leg().Update(within(t), offerSDP); !errors.Is(err, sip.ErrNoUpdate) {
		t.Errorf("got %v, want ErrNoUpdate", err)
	}
}

// RFC 3311 §5.2: the second of two offers is refused.
func TestCrossingUpdates(t *testing.T) {
	t.Parallel()
	p, _, e, dialog := inCall(t, "udp")
	sdp := "Content-Type: application/sdp\n"
	p.inside("UPDATE", dialog, 10, sdp, "v=0\r\n")
	first := want[sip.Reinvite](t, e)
	for i, c := range []struct{ method, status string }{{"UPDATE", "500"}, {"INVITE", "500"}} {
		p.inside(c.method, dialog, 11+i, sdp, "v=0\r\n")
		if m := p.expect("SIP/2.0 " + c.status); headerOf(m, "Retry-After") == "" {
			t.Errorf("%s without Retry-After:\n%s", c.method, m)
		}
	}
	p.inside("ACK", dialog, 12, "", "")
	first.Respond(200, answerSDP)
	if m := p.expect("SIP/2.0 200"); headerOf(m, "Contact") == "" || !bytes.HasSuffix([]byte(m), answerSDP) {
		t.Errorf("got:\n%s", m)
	}
	p.inside("UPDATE", dialog, 13, "Content-Type: text/plain\n", "x\r\n")
	p.expect("SIP/2.0 415")
	p.inside("UPDATE", dialog, 14, "", "") // a refresh
	p.expect("SIP/2.0 200")
	p.inside("UPDATE", dialog, 9, "", "")
	p.expect("SIP/2.0 500")
	none(t, e)
}

func TestUpdateCrossingOurOfferIs491(t *testing.T) {
	t.Parallel()
	p, leg, e, dialog := inCall(t, "udp")
	p.inside("UPDATE", dialog, 9, "Allow: UPDATE\n", "")
	p.expect("SIP/2.0 200")
	done := make(chan error, 1)
	go func() {
		_, err := leg.Update(within(t), offerSDP)
		done <- err
	}()
	theirs := p.expect("UPDATE ")
	p.inside("UPDATE", dialog, 10, "Content-Type: application/sdp\n", "v=0\r\n")
	p.expect("SIP/2.0 491")
	p.inside("UPDATE", dialog, 11, "", "") // no offer: no collision
	p.expect("SIP/2.0 200")
	p.answer(theirs, 200, "", "")
	if err := <-done; err != nil {
		t.Error(err)
	}
	none(t, e)
}
