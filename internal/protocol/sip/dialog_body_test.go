package sip_test

import (
	"fmt"
	"strings"
	"testing"

	"soniq/internal/protocol/sip"
)

const mixedType = "MIME-Version: 1.0\nContent-Type: multipart/mixed;boundary=unique-1\n"

// mixedBody returns a multipart body with ISUP and a session description, as gateways send it.
func mixedBody(sdp string) string {
	return "--unique-1\r\nContent-Type: application/isup;version=ansi88\r\nContent-Disposition: signal;handling=optional\r\n\r\n\x01\x00\x49\r\n" +
		"--unique-1\r\nContent-Type: application/sdp\r\nContent-Disposition: session;handling=required\r\n\r\n" + sdp + "\r\n--unique-1--\r\n"
}

// respondWithBody sends a response with a body.
func (p *peer) respondWithBody(req string, status int, extra, body string) {
	p.t.Helper()
	p.send("SIP/2.0 %d x\nVia: %s\nFrom: %s\nTo: %s;tag=one\nCall-ID: %s\nCSeq: %s\n%s%sContent-Length: %d\n\n%s",
		status, headerValue(req, "Via"), headerValue(req, "From"), headerValue(req, "To"), headerValue(req, "Call-ID"),
		headerValue(req, "CSeq"), p.contact(), extra, len(body), body)
}

// The session description of a multipart body is the offer or the answer in every message that carries one.
// https://github.com/signalwire/freeswitch/issues/1816
func TestMultipartBody_Received(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEventLog()
	p.sendInvite("m1", "Allow: UPDATE\n"+mixedType, mixedBody("v=0"))
	in := server.wantInbound(t)
	in.Listen(e.record)
	if string(in.Offer) != "v=0" {
		t.Errorf("the offer reads %q", in.Offer)
	}
	in.Answer(testAnswerSDP)
	ok := p.wantMessage("SIP/2.0 200")
	dialog := "From: " + headerValue(ok, "From") + "\nTo: " + headerValue(ok, "To") + "\nCall-ID: m1\n"
	p.sendInDialog("ACK", dialog, 5, "", "")
	wantEvent[sip.Acked](t, e)
	for i, method := range []string{"INVITE", "UPDATE"} {
		p.sendInDialog(method, dialog, 6+i, mixedType, mixedBody("v=0"))
		re := wantEvent[sip.Reinvite](t, e)
		if string(re.SDP) != "v=0" {
			t.Errorf("the offer of %s reads %q", method, re.SDP)
		}
		re.Respond(200, testAnswerSDP)
		p.wantMessage("SIP/2.0 200")
		if method == "INVITE" {
			p.sendInDialog("ACK", dialog, 6+i, "", "")
		}
	}
	p.sendInDialog("UPDATE", dialog, 8, mixedType, strings.Replace(mixedBody("v=0"), "optional", "required", 1))
	if m := p.wantMessage("SIP/2.0 415"); headerValue(m, "Accept") != "application/sdp, multipart/mixed" {
		t.Errorf("refused with:\n%s", m)
	}
	done := make(chan string, 1)
	go func() {
		answer, err := in.Leg().Reinvite(testContext(t), testOfferSDP)
		done <- fmt.Sprint(string(answer), err)
	}()
	m := p.wantMessage("INVITE ")
	body := mixedBody("v=0")
	p.send("SIP/2.0 200 x\nVia: %s\nFrom: %s\nTo: %s\nCall-ID: %s\nCSeq: %s\n%s%sContent-Length: %d\n\n%s", headerValue(m, "Via"), headerValue(m, "From"),
		headerValue(m, "To"), headerValue(m, "Call-ID"), headerValue(m, "CSeq"), p.contact(), mixedType, len(body), body)
	p.wantMessage("ACK ")
	if got := <-done; got != "v=0<nil>" {
		t.Errorf("the answer to our offer reads %q", got)
	}
}

func TestMultipartBody_AckOfLateOffer(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEventLog()
	p.sendInvite("m2", "Content-Type: application/isup;version=ansi88\nContent-Disposition: signal;handling=optional\n", "\x01\x00")
	in := server.wantInbound(t)
	in.Listen(e.record)
	if in.Offer != nil {
		t.Errorf("the offer reads %q", in.Offer)
	}
	in.Answer(testOfferSDP)
	ok := p.wantMessage("SIP/2.0 200")
	dialog := "From: " + headerValue(ok, "From") + "\nTo: " + headerValue(ok, "To") + "\nCall-ID: m2\n"
	p.sendInDialog("ACK", dialog, 5, mixedType, mixedBody("v=0"))
	if a := wantEvent[sip.Acked](t, e); string(a.SDP) != "v=0" || a.Unanswered {
		t.Errorf("got %+v", a)
	}
}

func TestMultipartBody_Responses(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEventLog()
	callPeer(t, server, p, e)
	inv := p.wantMessage("INVITE ")
	p.respondWithBody(inv, 183, mixedType, mixedBody("v=0"))
	if got := wantEvent[sip.Provisional](t, e); string(got.SDP) != "v=0" {
		t.Errorf("the 183 reads %q", got.SDP)
	}
	// A required part that we do not know cannot be refused any more.
	p.respondWithBody(inv, 200, mixedType, strings.Replace(mixedBody("v=0\r\ns=-"), "optional", "required", 1))
	if got := wantEvent[sip.Answered](t, e); string(got.SDP) != "v=0\r\ns=-" {
		t.Errorf("the 200 reads %q", got.SDP)
	}
	p.wantMessage("ACK ")
}

// A Contact without brackets, with an instance: the ACK goes to its URI.
// https://github.com/AlticeLabsPublic/asterisk-i/issues/97
func TestAnswer_BareContactWithInstance(t *testing.T) {
	t.Parallel()
	server := newTestServer(t, sip.Config{})
	p, e := newPeer(t, "udp", server), newEventLog()
	callPeer(t, server, p, e)
	inv := p.wantMessage("INVITE ")
	p.respond(inv, 200, "one", "Contact: sip:other@"+p.conn.LocalAddr().String()+";+sip.instance=\"<urn:uuid:1>\"\n")
	wantEvent[sip.Answered](t, e)
	if ack := p.wantMessage("ACK "); strings.Fields(ack)[1] != "sip:other@"+p.conn.LocalAddr().String() {
		t.Errorf("got:\n%s", ack)
	}
	p.send("INVITE sip:%s SIP/2.0\nVia: SIP/2.0/UDP %s;branch=z9hG4bKbare;rport\nFrom: sip:al@x;tag=f\nTo: sip:bob@x\nCall-ID: bare\nCSeq: 1\tINVITE\nContact: sip:al@%s;+sip.instance=\"<urn:uuid:1>\"\nContent-Length: 0\n\n",
		p.conn.RemoteAddr(), p.conn.LocalAddr(), p.conn.LocalAddr())
	if in := server.wantInbound(t); in.From.URI.User != "al" {
		t.Errorf("got %+v", in.From)
	}
}

// https://github.com/pjsip/pjproject/issues/188
func TestTransfer_CompactEvent(t *testing.T) {
	t.Parallel()
	p, _, _, dialog := callFromPeer(t, "udp")
	p.sendInDialog("NOTIFY", dialog, 20, "o: refer\nSubscription-State: active\n", "")
	p.wantMessage("SIP/2.0 481") // no REFER of ours; 489 would mean that the event is unknown
}
