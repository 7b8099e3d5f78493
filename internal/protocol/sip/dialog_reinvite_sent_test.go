package sip_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"soniq/internal/protocol/sip"
)

// withdrawnReinvite returns a call to a hand-driven peer with a re-INVITE whose caller no longer waits. heard makes
// the peer send a 100 first.
func withdrawnReinvite(t *testing.T, heard bool) (p *peer, leg *sip.Leg, e eventLog, invite string) {
	t.Helper()
	server := newTestServer(t, sip.Config{})
	p, e = newPeer(t, "udp", server), newEventLog()
	leg = callPeer(t, server, p, e)
	p.respond(p.wantMessage("INVITE "), 200, "one", p.contact())
	p.wantMessage("ACK ")
	wantEvent[sip.Answered](t, e)
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() {
		_, err := leg.Reinvite(ctx, testOfferSDP)
		result <- err
	}()
	invite = p.wantMessage("INVITE ")
	if heard {
		p.respond(invite, 100, "", "")
	}
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Fatalf("the re-INVITE ended with %v", err)
	}
	return p, leg, e, invite
}

func TestReinvite_LateAnswerIsReported(t *testing.T) {
	t.Parallel()
	p, leg, e, invite := withdrawnReinvite(t, false)
	p.respond(invite, 200, "", p.contact())
	p.wantMessage("ACK ")
	wantEvent[sip.LateReinviteAnswer](t, e)
	go func() { p.respond(p.wantMessage("INVITE "), 200, "", p.contact()) }()
	if _, err := leg.Reinvite(context.Background(), testOfferSDP); err != nil {
		t.Errorf("the next offer: %v", err)
	}
	wantNoEvent(t, e)
}

func TestReinvite_WithdrawnIsCanceled(t *testing.T) {
	t.Parallel()
	p, leg, e, invite := withdrawnReinvite(t, true)
	c := p.wantMessage("CANCEL ")
	if headerValue(c, "CSeq") != strings.Replace(headerValue(invite, "CSeq"), "INVITE", "CANCEL", 1) {
		t.Errorf("CANCEL of another request:\n%s", c)
	}
	p.respond(c, 200, "", "")
	p.respond(invite, 487, "", "")
	p.wantMessage("ACK ")
	wantNoEvent(t, e)
	go func() { p.respond(p.wantMessage("INVITE "), 200, "", p.contact()) }()
	if _, err := leg.Reinvite(context.Background(), testOfferSDP); err != nil {
		t.Errorf("the next offer: %v", err)
	}
	wantNoEvent(t, e)
}
