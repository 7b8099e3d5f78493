package sip_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
)

func TestEarlyMediaIsAcknowledged(t *testing.T) {
	t.Parallel()
	for _, transport := range bothTransports {
		pa, pb := listen(t, sip.Config{}), listen(t, sip.Config{})
		a, b := newEvents(), newEvents()
		leg := place(t, pa, pb, transport, offerSDP, a)
		in := pb.incoming(t)
		in.Listen(b.on)
		in.Ring(180, nil)
		in.Ring(183, answerSDP)
		in.Ring(180, nil)
		in.Answer(answerSDP) // waits for the PRACK
		seen := map[int]int{}
		for {
			ev := <-a
			if p, ok := ev.(sip.Provisional); ok {
				seen[p.Status]++
				continue
			}
			if got := ev.(sip.Answered); !bytes.Equal(got.SDP, answerSDP) {
				t.Errorf("answer reads %q", got.SDP)
			}
			break
		}
		if seen[183] != 1 {
			t.Errorf("provisional responses %v, want 183 once", seen)
		}
		want[sip.Acked](t, b)
		leg.Bye(sip.Reason{})
		want[sip.Bye](t, b)
		want[sip.Closed](t, a)
	}
}

func TestUpdateBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	pa, pb := listen(t, sip.Config{}), listen(t, sip.Config{})
	a, b := newEvents(), newEvents()
	caller := place(t, pa, pb, sip.UDP, offerSDP, a)
	in := pb.incoming(t)
	in.Listen(b.on)
	if _, err := in.Leg().Update(within(t), offerSDP); err != sip.ErrNoUpdate {
		t.Fatalf("update before any answer: %v, want ErrNoUpdate", err)
	}
	in.Ring(183, answerSDP)
	want[sip.Provisional](t, a)
	update := func(from *sip.Leg, other events) {
		t.Helper()
		go func() {
			re := (<-other).(sip.Reinvite)
			if !re.Early || !bytes.Equal(re.SDP, offerSDP) {
				t.Errorf("got early %v, %q", re.Early, re.SDP)
			}
			re.Respond(200, answerSDP)
		}()
		if got, err := from.Update(within(t), offerSDP); err != nil || !bytes.Equal(got, answerSDP) {
			t.Fatalf("update: %q, %v", got, err)
		}
	}
	update(caller, b)
	update(in.Leg(), a)
	go func() { (<-b).(sip.Reinvite).Respond(481, nil) }() // no session exists yet: the dialog must continue
	_, err := caller.Update(within(t), offerSDP)
	var status *sip.StatusError
	if !errors.As(err, &status) || status.Status != 488 {
		t.Errorf("got %v, want 488", err)
	}
	in.Answer(answerSDP)
	want[sip.Answered](t, a)
	want[sip.Acked](t, b)
	caller.Bye(sip.Reason{})
	want[sip.Bye](t, b)
}

// sendInvite sends an INVITE with additional fields. The Call-ID is also its branch.
func (p *peer) invite(callID, extra, body string) {
	p.t.Helper()
	local := p.conn.LocalAddr().String()
	p.send("INVITE sip:%s SIP/2.0\nVia: SIP/2.0/UDP %s;branch=z9hG4bK%s;rport\nMax-Forwards: 70\nFrom: <sip:al@x>;tag=f\nTo: <sip:bob@x>\nCall-ID: %s\nCSeq: 5 INVITE\nContact: <sip:al@%s>\n%sContent-Length: %d\n\n%s",
		p.conn.RemoteAddr(), local, callID, callID, local, extra, len(body), body)
}

const sdpBody = "v=0\r\n"

func TestReliableResponsesOnTheWire(t *testing.T) {
	t.Parallel()
	server := listen(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEvents()
	p.invite("r1", "Require: 100rel\nContent-Type: application/sdp\n", sdpBody)
	in := server.incoming(t)
	in.Listen(e.on)
	in.Ring(180, nil)
	in.Ring(183, answerSDP)
	ringing := p.expect("SIP/2.0 180")
	if again := p.expect("SIP/2.0 180"); again != ringing || headerOf(again, "Require") != "100rel" {
		t.Fatalf("repeated:\n%s", again)
	}
	dialog := "From: " + headerOf(ringing, "From") + "\nTo: " + headerOf(ringing, "To") + "\nCall-ID: r1\n"
	prack := func(seq int, rack string) { p.inside("PRACK", dialog, seq, "RAck: "+rack+"\n", "") }
	rseq := 0
	fmt.Sscan(headerOf(ringing, "RSeq"), &rseq)
	for i, wrong := range []string{fmt.Sprint(rseq+1, " 5 INVITE"), fmt.Sprint(rseq, " 4 INVITE"), fmt.Sprint(rseq, " 5 UPDATE"), "x", ""} {
		prack(6+i, wrong)
		p.expectPast("SIP/2.0 481", "SIP/2.0 180")
	}
	prack(20, fmt.Sprint(rseq, " 5 INVITE"))
	p.expectPast("SIP/2.0 200", "SIP/2.0 180")
	progress := p.expectPast("SIP/2.0 183", "SIP/2.0 180")
	if headerOf(progress, "RSeq") != fmt.Sprint(rseq+1) {
		t.Errorf("RSeq goes from %d to %s", rseq, headerOf(progress, "RSeq"))
	}
	in.Answer(answerSDP)
	p.silent(300 * time.Millisecond) // RFC 3262 §3: not before the PRACK
	prack(21, fmt.Sprint(rseq+1, " 5 INVITE"))
	p.expectPast("SIP/2.0 200", "SIP/2.0 183")
	ok := p.expect("SIP/2.0 200")
	if headerOf(ok, "CSeq") != "5 INVITE" {
		t.Fatalf("got:\n%s", ok)
	}
	p.inside("ACK", dialog, 5, "", "") // the CSeq of the INVITE, regardless of later requests
	want[sip.Acked](t, e)
	prack(22, fmt.Sprint(rseq+1, " 5 INVITE"))
	p.expect("SIP/2.0 481")
	p.inside("BYE", dialog, 23, "", "")
	p.expect("SIP/2.0 200")
	want[sip.Bye](t, e)
}

// wantMessageAfter reads until a message with a prefix and skips repetitions of an earlier one.
func (p *peer) expectPast(start, skip string) string {
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

func TestPrackMayCarryAnOffer(t *testing.T) {
	t.Parallel()
	server := listen(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEvents()
	p.invite("r2", "Supported: 100rel\nContent-Type: application/sdp\n", sdpBody)
	in := server.incoming(t)
	in.Listen(e.on)
	in.Ring(183, answerSDP)
	m := p.expect("SIP/2.0 183")
	dialog := "From: " + headerOf(m, "From") + "\nTo: " + headerOf(m, "To") + "\nCall-ID: r2\n"
	p.inside("PRACK", dialog, 6, "RAck: "+headerOf(m, "RSeq")+" 5 INVITE\nContent-Type: application/sdp\n", sdpBody)
	re := want[sip.Reinvite](t, e)
	if !re.Early || string(re.SDP) != "v=0\r\n" {
		t.Errorf("got %+v", re)
	}
	re.Respond(200, offerSDP)
	if ok := p.expect("SIP/2.0 200"); !strings.HasSuffix(ok, string(offerSDP)) {
		t.Errorf("got:\n%s", ok)
	}
}

// A CANCEL has the CSeq of the INVITE although a PRACK had a later one.
func TestCancelAfterPrack(t *testing.T) {
	t.Parallel()
	server := listen(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEvents()
	leg, err := server.Server.Invite(within(t), sip.Outgoing{URI: "sip:bob@" + p.conn.LocalAddr().String(), SDP: offerSDP}, e.on)
	if err != nil {
		t.Fatal(err)
	}
	inv := p.expect("INVITE ")
	if !strings.Contains(headerOf(inv, "Supported"), "100rel") {
		t.Fatalf("INVITE is:\n%s", inv)
	}
	contact := "Contact: <sip:bob@" + p.conn.LocalAddr().String() + ">\n"
	for range 2 { // the second is a repetition
		p.answer(inv, 183, "one", contact+"Require: 100rel\nRSeq: 7\n")
	}
	want[sip.Provisional](t, e)
	prack := p.expect("PRACK ")
	if headerOf(prack, "RAck") != "7 "+headerOf(inv, "CSeq") || !strings.HasSuffix(headerOf(prack, "To"), "tag=one") {
		t.Errorf("PRACK is:\n%s", prack)
	}
	p.answer(prack, 200, "", "")
	p.answer(inv, 183, "one", contact+"Require: 100rel\nRSeq: 9\n") // 8 is missing
	p.answer(inv, 180, "two", contact+"Require: 100rel\nRSeq: 400\n")
	want[sip.Provisional](t, e)
	fork := p.expect("PRACK ")
	if headerOf(fork, "RAck") != "400 1 INVITE" || !strings.HasSuffix(headerOf(fork, "To"), "tag=two") {
		t.Errorf("PRACK is:\n%s", fork)
	}
	p.answer(fork, 200, "", "")
	leg.Cancel()
	cancel := p.expect("CANCEL ")
	if headerOf(cancel, "CSeq") != "1 CANCEL" || headerOf(cancel, "Via") != headerOf(inv, "Via") {
		t.Errorf("CANCEL is:\n%s", cancel)
	}
	p.answer(cancel, 200, "one", "")
	p.answer(inv, 487, "one", "")
	if ack := p.expect("ACK "); headerOf(ack, "CSeq") != "1 ACK" {
		t.Errorf("ACK is:\n%s", ack)
	}
	want[sip.Failed](t, e)
}

func TestAckAfterPrackHasTheCSeqOfTheInvite(t *testing.T) {
	t.Parallel()
	server := listen(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEvents()
	leg, _ := server.Server.Invite(within(t), sip.Outgoing{URI: "sip:bob@" + p.conn.LocalAddr().String(), SDP: offerSDP}, e.on)
	inv := p.expect("INVITE ")
	contact := "Contact: <sip:bob@" + p.conn.LocalAddr().String() + ">\n"
	p.answer(inv, 180, "one", contact+"Require: 100rel\nRSeq: 1\n")
	p.answer(p.expect("PRACK "), 200, "", "")
	p.answer(inv, 200, "one", contact)
	if ack := p.expect("ACK "); headerOf(ack, "CSeq") != "1 ACK" {
		t.Errorf("ACK is:\n%s", ack)
	}
	leg.Bye(sip.Reason{})
	if bye := p.expect("BYE "); headerOf(bye, "CSeq") != "3 BYE" {
		t.Errorf("BYE is:\n%s", bye)
	}
}
