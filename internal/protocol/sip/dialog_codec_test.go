package sip

import (
	"strings"
	"testing"
	"time"

	codec "github.com/emiago/sipgo/sip"

	"soniq/internal/protocol/sip/sipmsg"
)

// TestWrite_ThirdPartyParserReadsAllMessages checks every kind of message of a call in both directions with the
// parser of another project.
func TestWrite_ThirdPartyParserReadsAllMessages(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	in := l.receiveInvite(t)
	in.Ring(183, []byte("v=0\r\n"))
	in.Answer([]byte("v=0\r\n"))
	l.work()
	l.handleMessage(request("ACK", "a1", l.localTag(), 1), udpPeer)
	in.Leg().Bye(Reason{Q850: 16, Text: `with "quotes"`})
	l.handleMessage(request("INVITE", "x", "", 1)[:40], udpPeer)
	l.handleMessage(strings.Replace(request("OPTIONS", "o", "", 1), "Max-Forwards", "Require: nothing\r\nMax-Forwards", 1), udpPeer)
	l.handleMessage(request("OPTIONS", "o2", "", 1), udpPeer)
	out := &Outgoing{
		URI: "sip:+49 30@x", From: sipmsg.Address{Display: `a "b" \c`, URI: sipmsg.URI{User: "al ice"}},
		Identity: sipmsg.Address{URI: sipmsg.URI{User: "+4930"}}, RemoteParty: sipmsg.Address{URI: sipmsg.URI{User: "+4930"}}, Anonymous: true,
		Header: []Header{{"X-Call", "1"}}, SDP: []byte("v=0\r\n"),
	}
	uri := sipmsg.URI{Scheme: "sip", User: "+4930", Host: "::1", Port: 5061}
	leg, err := l.newOutgoingLeg(out, outgoingRoute{uri: uri, target: uri.String(), routes: []string{"<sip:edge;lr>"}, flow: udpPeer,
		callID: "out1"}, func(Event) {})
	if err != nil {
		t.Fatal(err)
	}
	leg.sendFirstInvite()
	leg.Cancel()
	l.work()
	l.advance(time.Second)
	l.work()
	if len(l.sent) < 9 {
		t.Fatalf("only %d messages: %v", len(l.sent), l.sentMethods())
	}
	for _, raw := range l.sent {
		m, err := codec.ParseMessage([]byte(raw))
		if err != nil {
			t.Errorf("%v:\n%s", err, raw)
			continue
		}
		if m.Via() == nil || m.From() == nil || m.To() == nil || m.CallID() == nil || m.CSeq() == nil || m.ContentLength() == nil {
			t.Errorf("a mandatory field is missing:\n%s", raw)
		}
	}
}

func TestWrite_HeaderInjectionRefused(t *testing.T) {
	t.Parallel()
	l := newTestShard(t)
	uri := sipmsg.URI{Scheme: "sip", User: "x", Host: "example.com"}
	r := outgoingRoute{uri: uri, target: uri.String(), flow: udpPeer, callID: "c"}
	for name, o := range map[string]*Outgoing{
		"a header value with a line end": {Header: []Header{{"X-A", "1\r\nX-B: 2"}}},
		"a header name with a colon":     {Header: []Header{{"X-A: 1\r\nX-B", "2"}}},
		"a header of ours":               {Header: []Header{{"Via", "SIP/2.0/UDP x"}}},
		"a host with a line end":         {From: sipmsg.Address{URI: sipmsg.URI{User: "a", Host: "x\r\ny"}}},
	} {
		if _, err := l.newOutgoingLeg(o, r, nil); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	leg, err := l.newOutgoingLeg(&Outgoing{From: sipmsg.Address{Display: "a\r\nX-B: 2", URI: sipmsg.URI{User: "a\r\nX-C: 3"}}}, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(leg.local, "\r\n") {
		t.Errorf("From reads %q", leg.local)
	}
}

func BenchmarkPeek(b *testing.B) {
	raw := request("INVITE", "i1", "", 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := sipmsg.PeekMessage(raw); !ok {
			b.Fatal("not SIP")
		}
	}
}
