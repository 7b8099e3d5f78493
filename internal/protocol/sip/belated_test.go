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
func withdrawn(t *testing.T, heard bool) (p *peer, leg *sip.Leg, e events, invite string) {
	t.Helper()
	server := listen(t, sip.Config{})
	p, e = newPeer(t, "udp", server), newEvents()
	leg = toPeer(t, server, p, e)
	p.answer(p.expect("INVITE "), 200, "one", p.contact())
	p.expect("ACK ")
	want[sip.Answered](t, e)
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() {
		_, err := leg.Reinvite(ctx, offerSDP)
		result <- err
	}()
	invite = p.expect("INVITE ")
	if heard {
		p.answer(invite, 100, "", "")
	}
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Fatalf("the re-INVITE ended with %v", err)
	}
	return p, leg, e, invite
}

func TestAnAnswerNobodyWaitsForIsTold(t *testing.T) {
	t.Parallel()
	p, leg, e, invite := withdrawn(t, false)
	p.answer(invite, 200, "", p.contact())
	p.expect("ACK ")
	want[sip.Belated](t, e)
	go func() { p.answer(p.expect("INVITE "), 200, "", p.contact()) }()
	if _, err := leg.Reinvite(context.Background(), offerSDP); err != nil {
		t.Errorf("the next offer: %v", err)
	}
	none(t, e)
}

func TestAReinviteNobodyWaitsForIsCanceled(t *testing.T) {
	t.Parallel()
	p, leg, e, invite := withdrawn(t, true)
	c := p.expect("CANCEL ")
	if headerOf(c, "CSeq") != strings.Replace(headerOf(invite, "CSeq"), "INVITE", "CANCEL", 1) {
		t.Errorf("CANCEL of another request:\n%s", c)
	}
	p.answer(c, 200, "", "")
	p.answer(invite, 487, "", "")
	p.expect("ACK ")
	none(t, e)
	go func() { p.answer(p.expect("INVITE "), 200, "", p.contact()) }()
	if _, err := leg.Reinvite(context.Background(), offerSDP); err != nil {
		t.Errorf("the next offer: %v", err)
	}
	none(t, e)
}
