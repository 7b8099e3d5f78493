package sip

import (
	"strings"
	"testing"
	"time"

	codec "github.com/emiago/sipgo/sip"
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
		URI: "sip:+49 30@x", From: Address{Display: `a "b" \c`, URI: URI{User: "al ice"}},
		Identity: Address{URI: URI{User: "+4930"}}, RemoteParty: Address{URI: URI{User: "+4930"}}, Anonymous: true,
		Header: []Header{{"X-Call", "1"}}, SDP: []byte("v=0\r\n"),
	}
	uri := URI{Scheme: "sip", User: "+4930", Host: "::1", Port: 5061}
	leg, err := l.newOutgoingLeg(out, outgoingRoute{uri: uri, target: uri.String(), routes: []string{"<sip:edge;lr>"}, flow: udpPeer, callID: "out1"}, func(Event) {})
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
	uri := URI{Scheme: "sip", User: "x", Host: "example.com"}
	r := outgoingRoute{uri: uri, target: uri.String(), flow: udpPeer, callID: "c"}
	for name, o := range map[string]*Outgoing{
		"a header value with a line end": {Header: []Header{{"X-A", "1\r\nX-B: 2"}}},
		"a header name with a colon":     {Header: []Header{{"X-A: 1\r\nX-B", "2"}}},
		"a header of ours":               {Header: []Header{{"Via", "SIP/2.0/UDP x"}}},
		"a host with a line end":         {From: Address{URI: URI{User: "a", Host: "x\r\ny"}}},
	} {
		if _, err := l.newOutgoingLeg(o, r, nil); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	leg, err := l.newOutgoingLeg(&Outgoing{From: Address{Display: "a\r\nX-B: 2", URI: URI{User: "a\r\nX-C: 3"}}}, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(leg.local, "\r\n") {
		t.Errorf("From reads %q", leg.local)
	}
	if _, err := ParseURI("sip:x@y\r\nX: 1"); err == nil {
		t.Error("a URI with a line end is accepted")
	}
}

func TestURI_Parse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]URI{
		"sip:alice@example.com":                         {Scheme: "sip", User: "alice", Host: "example.com"},
		"SIPS:al%20ice:pw@[2001:db8::1]:5061;lr;x=y":    {Scheme: "sips", User: "al ice", Host: "2001:db8::1", Port: 5061, Params: "lr;x=y"},
		"tel:+49301234567;phone-context=example.com":    {Scheme: "tel", User: "+49301234567", Params: "phone-context=example.com"},
		"sip:user;par=u%40example.net@example.com":      {Scheme: "sip", User: "user;par=u@example.net", Host: "example.com"},
		"sip:example.com:5060;transport=tcp?Replaces=1": {Scheme: "sip", Host: "example.com", Port: 5060, Params: "transport=tcp", query: "Replaces=1"},
	} {
		got, err := ParseURI(text)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "sip:", "alice", "sip:a b@c", "<sip:a@b>", "sip:a@[::1", "sip:a@b:99999", "sip:a@b:x", "sip:a@", "1sip:a@b", "sip:a@b/c"} {
		if u, err := ParseURI(bad); err == nil {
			t.Errorf("%q reads %+v, want an error", bad, u)
		}
	}
}

func BenchmarkParseAndRead(b *testing.B) {
	raw := request("INVITE", "i1", "", 1)
	var m message
	b.ReportAllocs()
	for b.Loop() {
		m.parse(raw, udpPeer)
		if m.readMandatory() != nil || m.validate("INVITE") != nil {
			b.Fatal("refused")
		}
	}
}

func BenchmarkPeek(b *testing.B) {
	raw := request("INVITE", "i1", "", 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := peekMessage(raw); !ok {
			b.Fatal("not SIP")
		}
	}
}

func BenchmarkCodecOfSipgo(b *testing.B) { // for comparison
	raw := []byte(request("INVITE", "i1", "", 1))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := codec.ParseMessage(raw); err != nil {
			b.Fatal(err)
		}
	}
}
