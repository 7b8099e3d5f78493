package sip_test

import (
	"bytes"
	"errors"
	"testing"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
)

func TestUpdate_BothDirections(t *testing.T) {
	t.Parallel()
	for _, transport := range bothTransports {
		caller, callee, a, b := newAnsweredCall(t, transport)
		for _, side := range []struct {
			leg   *sip.Leg
			other eventLog
		}{{caller, b}, {callee, a}, {caller, b}} {
			go func() {
				re := (<-side.other).(sip.Reinvite)
				if !bytes.Equal(re.SDP, testOfferSDP) || re.Early {
					t.Errorf("offer reads %q, early %v", re.SDP, re.Early)
				}
				re.Respond(200, testAnswerSDP)
			}()
			got, err := side.leg.Update(testContext(t), testOfferSDP)
			if err != nil || !bytes.Equal(got, testAnswerSDP) {
				t.Fatalf("update: %q, %v", got, err)
			}
		}
		caller.Bye(sip.Reason{})
		wantEvent[sip.Bye](t, b)
	}
}

func TestUpdate_RefusedKeepsCall(t *testing.T) {
	t.Parallel()
	caller, _, _, b := newAnsweredCall(t, sipmsg.UDP)
	go func() { (<-b).(sip.Reinvite).Respond(488, nil) }()
	_, err := caller.Update(testContext(t), testOfferSDP)
	var status *sip.StatusError
	if !errors.As(err, &status) || status.Status != 488 {
		t.Fatalf("got %v, want 488", err)
	}
	caller.Bye(sip.Reason{})
	wantEvent[sip.Bye](t, b)
}

func TestUpdate_NeedsAllow(t *testing.T) {
	t.Parallel()
	server, e := newTestServer(t, sip.Config{}), newEventLog()
	p := newPeer(t, "udp", server)
	p.sendRequest("INVITE", "al", "c1", 1, "") // no Allow
	in := server.wantInbound(t)
	in.Listen(e.record)
	in.Answer(testOfferSDP)
	ok := p.wantMessage("SIP/2.0 200")
	p.sendInDialog("ACK", "From: "+headerValue(ok, "From")+"\nTo: "+headerValue(ok, "To")+"\nCall-ID: c1\n", 1, "", "")
	wantEvent[sip.Acked](t, e)
	if _, err := in.Leg().Update(testContext(t), testOfferSDP); !errors.Is(err, sip.ErrUpdateNotAllowed) {
		t.Errorf("got %v, want ErrNoUpdate", err)
	}
}

// RFC 3311 §5.2: the second of two offers is refused.
func TestUpdate_SecondOfferWaits(t *testing.T) {
	t.Parallel()
	p, _, e, dialog := callFromPeer(t, "udp")
	sdp := "Content-Type: application/sdp\n"
	p.sendInDialog("UPDATE", dialog, 10, sdp, "v=0\r\n")
	first := wantEvent[sip.Reinvite](t, e)
	for i, c := range []struct{ method, status string }{{"UPDATE", "500"}, {"INVITE", "500"}} {
		p.sendInDialog(c.method, dialog, 11+i, sdp, "v=0\r\n")
		if m := p.wantMessage("SIP/2.0 " + c.status); headerValue(m, "Retry-After") == "" {
			t.Errorf("%s without Retry-After:\n%s", c.method, m)
		}
	}
	p.sendInDialog("ACK", dialog, 12, "", "")
	first.Respond(200, testAnswerSDP)
	if m := p.wantMessage("SIP/2.0 200"); headerValue(m, "Contact") == "" || !bytes.HasSuffix([]byte(m), testAnswerSDP) {
		t.Errorf("got:\n%s", m)
	}
	p.sendInDialog("UPDATE", dialog, 13, "Content-Type: text/plain\n", "x\r\n")
	p.wantMessage("SIP/2.0 415")
	p.sendInDialog("UPDATE", dialog, 14, "", "") // a refresh
	p.wantMessage("SIP/2.0 200")
	p.sendInDialog("UPDATE", dialog, 9, "", "")
	p.wantMessage("SIP/2.0 500")
	wantNoEvent(t, e)
}

func TestUpdate_GlareGets491(t *testing.T) {
	t.Parallel()
	p, leg, e, dialog := callFromPeer(t, "udp")
	p.sendInDialog("UPDATE", dialog, 9, "Allow: UPDATE\n", "")
	p.wantMessage("SIP/2.0 200")
	done := make(chan error, 1)
	go func() {
		_, err := leg.Update(testContext(t), testOfferSDP)
		done <- err
	}()
	theirs := p.wantMessage("UPDATE ")
	p.sendInDialog("UPDATE", dialog, 10, "Content-Type: application/sdp\n", "v=0\r\n")
	p.wantMessage("SIP/2.0 491")
	p.sendInDialog("UPDATE", dialog, 11, "", "") // no offer: no collision
	p.wantMessage("SIP/2.0 200")
	p.respond(theirs, 200, "", "")
	if err := <-done; err != nil {
		t.Error(err)
	}
	wantNoEvent(t, e)
}
