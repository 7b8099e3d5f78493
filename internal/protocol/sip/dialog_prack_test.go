package sip_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
)

func TestPRACK_EarlyMedia(t *testing.T) {
	t.Parallel()
	for _, transport := range bothTransports {
		pa, pb := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
		a, b := newEventLog(), newEventLog()
		leg := placeCall(t, pa, pb, transport, testOfferSDP, a)
		in := pb.wantInbound(t)
		in.Listen(b.record)
		in.Ring(180, nil)
		in.Ring(183, testAnswerSDP)
		in.Ring(180, nil)
		in.Answer(testAnswerSDP) // waits for the PRACK
		seen := map[int]int{}
		for {
			ev := <-a
			if p, ok := ev.(sip.Provisional); ok {
				seen[p.Status]++
				continue
			}
			if got := ev.(sip.Answered); !bytes.Equal(got.SDP, testAnswerSDP) {
				t.Errorf("answer reads %q", got.SDP)
			}
			break
		}
		if seen[183] != 1 {
			t.Errorf("provisional responses %v, want 183 once", seen)
		}
		wantEvent[sip.Acked](t, b)
		leg.Bye(sip.Reason{})
		wantEvent[sip.Bye](t, b)
		wantEvent[sip.Closed](t, a)
	}
}

func TestUpdate_EarlyDialog(t *testing.T) {
	t.Parallel()
	pa, pb := newTestServer(t, sip.Config{}), newTestServer(t, sip.Config{})
	a, b := newEventLog(), newEventLog()
	caller := placeCall(t, pa, pb, sipmsg.UDP, testOfferSDP, a)
	in := pb.wantInbound(t)
	in.Listen(b.record)
	if _, err := in.Leg().Update(testContext(t), testOfferSDP); err != sip.ErrUpdateNotAllowed {
		t.Fatalf("update before any answer: %v, want ErrNoUpdate", err)
	}
	in.Ring(183, testAnswerSDP)
	wantEvent[sip.Provisional](t, a)
	update := func(from *sip.Leg, other eventLog) {
		t.Helper()
		go func() {
			re := (<-other).(sip.Reinvite)
			if !re.Early || !bytes.Equal(re.SDP, testOfferSDP) {
				t.Errorf("got early %v, %q", re.Early, re.SDP)
			}
			re.Respond(200, testAnswerSDP)
		}()
		if got, err := from.Update(testContext(t), testOfferSDP); err != nil || !bytes.Equal(got, testAnswerSDP) {
			t.Fatalf("update: %q, %v", got, err)
		}
	}
	update(caller, b)
	update(in.Leg(), a)
	go func() { (<-b).(sip.Reinvite).Respond(481, nil) }() // no session exists yet: the dialog must continue
	_, err := caller.Update(testContext(t), testOfferSDP)
	var status *sip.StatusError
	if !errors.As(err, &status) || status.Status != 488 {
		t.Errorf("got %v, want 488", err)
	}
	in.Answer(testAnswerSDP)
	wantEvent[sip.Answered](t, a)
	wantEvent[sip.Acked](t, b)
	caller.Bye(sip.Reason{})
	wantEvent[sip.Bye](t, b)
}

// sendInvite sends an INVITE with additional fields. The Call-ID is also its branch.
func (p *peer) sendInvite(callID, extra, body string) {
	p.t.Helper()
	local := p.conn.LocalAddr().String()
	p.send("INVITE sip:%s SIP/2.0\nVia: SIP/2.0/UDP %s;branch=z9hG4bK%s;rport\nMax-Forwards: 70\nFrom: <sip:al@x>;tag=f\nTo: <sip:bob@x>\nCall-ID: %s\nCSeq: 5 INVITE\nContact: <sip:al@%s>\n%sContent-Length: %d\n\n%s",
		p.conn.RemoteAddr(), local, callID, callID, local, extra, len(body), body)
}

const sdpBody = "v=0\r\n"

func TestPRACK_OnTheWire(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEventLog()
	p.sendInvite("r1", "Require: 100rel\nContent-Type: application/sdp\n", sdpBody)
	in := server.wantInbound(t)
	in.Listen(e.record)
	in.Ring(180, nil)
	in.Ring(183, testAnswerSDP)
	ringing := p.wantMessage("SIP/2.0 180")
	if again := p.wantMessage("SIP/2.0 180"); again != ringing || headerValue(again, "Require") != "100rel" {
		t.Fatalf("repeated:\n%s", again)
	}
	dialog := "From: " + headerValue(ringing, "From") + "\nTo: " + headerValue(ringing, "To") + "\nCall-ID: r1\n"
	prack := func(seq int, rack string) { p.sendInDialog("PRACK", dialog, seq, "RAck: "+rack+"\n", "") }
	rseq := 0
	fmt.Sscan(headerValue(ringing, "RSeq"), &rseq)
	for i, wrong := range []string{fmt.Sprint(rseq+1, " 5 INVITE"), fmt.Sprint(rseq, " 4 INVITE"), fmt.Sprint(rseq, " 5 UPDATE"), "x", ""} {
		prack(6+i, wrong)
		p.wantMessageAfter("SIP/2.0 481", "SIP/2.0 180")
	}
	prack(20, fmt.Sprint(rseq, " 5 INVITE"))
	p.wantMessageAfter("SIP/2.0 200", "SIP/2.0 180")
	progress := p.wantMessageAfter("SIP/2.0 183", "SIP/2.0 180")
	if headerValue(progress, "RSeq") != fmt.Sprint(rseq+1) {
		t.Errorf("RSeq goes from %d to %s", rseq, headerValue(progress, "RSeq"))
	}
	in.Answer(testAnswerSDP)
	p.wantSilence(300 * time.Millisecond) // RFC 3262 §3: not before the PRACK
	prack(21, fmt.Sprint(rseq+1, " 5 INVITE"))
	p.wantMessageAfter("SIP/2.0 200", "SIP/2.0 183")
	ok := p.wantMessage("SIP/2.0 200")
	if headerValue(ok, "CSeq") != "5 INVITE" {
		t.Fatalf("got:\n%s", ok)
	}
	p.sendInDialog("ACK", dialog, 5, "", "") // the CSeq of the INVITE, regardless of later requests
	wantEvent[sip.Acked](t, e)
	prack(22, fmt.Sprint(rseq+1, " 5 INVITE"))
	p.wantMessage("SIP/2.0 481")
	p.sendInDialog("BYE", dialog, 23, "", "")
	p.wantMessage("SIP/2.0 200")
	wantEvent[sip.Bye](t, e)
}

// wantMessageAfter reads until a message with a prefix and skips repetitions of an earlier one.
func (p *peer) wantMessageAfter(start, skip string) string {
	p.t.Helper()
	for {
		m := p.read()
		if strings.HasPrefix(m, start) {
			return m
		}
		if !strings.HasPrefix(m, skip) {
			p.t.Fatalf("want %s, got:\n%s", start, m)
		}
	}
}

func TestPRACK_CarriesOffer(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEventLog()
	p.sendInvite("r2", "Supported: 100rel\nContent-Type: application/sdp\n", sdpBody)
	in := server.wantInbound(t)
	in.Listen(e.record)
	in.Ring(183, testAnswerSDP)
	m := p.wantMessage("SIP/2.0 183")
	dialog := "From: " + headerValue(m, "From") + "\nTo: " + headerValue(m, "To") + "\nCall-ID: r2\n"
	p.sendInDialog("PRACK", dialog, 6, "RAck: "+headerValue(m, "RSeq")+" 5 INVITE\nContent-Type: application/sdp\n", sdpBody)
	re := wantEvent[sip.Reinvite](t, e)
	if !re.Early || string(re.SDP) != "v=0\r\n" {
		t.Errorf("got %+v", re)
	}
	re.Respond(200, testOfferSDP)
	if ok := p.wantMessage("SIP/2.0 200"); !strings.HasSuffix(ok, string(testOfferSDP)) {
		t.Errorf("got:\n%s", ok)
	}
}

// A CANCEL has the CSeq of the INVITE although a PRACK had a later one.
func TestPRACK_CancelHasCSeqOfInvite(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEventLog()
	leg, err := server.Server.Invite(testContext(t), sip.Outgoing{URI: "sip:bob@" + p.conn.LocalAddr().String(), SDP: testOfferSDP},
		e.record)
	if err != nil {
		t.Fatal(err)
	}
	inv := p.wantMessage("INVITE ")
	if !strings.Contains(headerValue(inv, "Supported"), "100rel") {
		t.Fatalf("INVITE is:\n%s", inv)
	}
	contact := "Contact: <sip:bob@" + p.conn.LocalAddr().String() + ">\n"
	for range 2 { // the second is a repetition
		p.respond(inv, 183, "one", contact+"Require: 100rel\nRSeq: 7\n")
	}
	wantEvent[sip.Provisional](t, e)
	prack := p.wantMessage("PRACK ")
	if headerValue(prack, "RAck") != "7 "+headerValue(inv, "CSeq") || !strings.HasSuffix(headerValue(prack, "To"), "tag=one") {
		t.Errorf("PRACK is:\n%s", prack)
	}
	p.respond(prack, 200, "", "")
	p.respond(inv, 183, "one", contact+"Require: 100rel\nRSeq: 9\n") // 8 is missing
	p.respond(inv, 180, "two", contact+"Require: 100rel\nRSeq: 400\n")
	wantEvent[sip.Provisional](t, e)
	fork := p.wantMessage("PRACK ")
	if headerValue(fork, "RAck") != "400 1 INVITE" || !strings.HasSuffix(headerValue(fork, "To"), "tag=two") {
		t.Errorf("PRACK is:\n%s", fork)
	}
	p.respond(fork, 200, "", "")
	leg.Cancel()
	cancel := p.wantMessage("CANCEL ")
	if headerValue(cancel, "CSeq") != "1 CANCEL" || headerValue(cancel, "Via") != headerValue(inv, "Via") {
		t.Errorf("CANCEL is:\n%s", cancel)
	}
	p.respond(cancel, 200, "one", "")
	p.respond(inv, 487, "one", "")
	if ack := p.wantMessage("ACK "); headerValue(ack, "CSeq") != "1 ACK" {
		t.Errorf("ACK is:\n%s", ack)
	}
	wantEvent[sip.Failed](t, e)
}

func TestPRACK_AckHasCSeqOfInvite(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEventLog()
	leg, _ := server.Server.Invite(testContext(t), sip.Outgoing{URI: "sip:bob@" + p.conn.LocalAddr().String(), SDP: testOfferSDP}, e.record)
	inv := p.wantMessage("INVITE ")
	contact := "Contact: <sip:bob@" + p.conn.LocalAddr().String() + ">\n"
	p.respond(inv, 180, "one", contact+"Require: 100rel\nRSeq: 1\n")
	p.respond(p.wantMessage("PRACK "), 200, "", "")
	p.respond(inv, 200, "one", contact)
	if ack := p.wantMessage("ACK "); headerValue(ack, "CSeq") != "1 ACK" {
		t.Errorf("ACK is:\n%s", ack)
	}
	leg.Bye(sip.Reason{})
	if bye := p.wantMessage("BYE "); headerValue(bye, "CSeq") != "3 BYE" {
		t.Errorf("BYE is:\n%s", bye)
	}
}
