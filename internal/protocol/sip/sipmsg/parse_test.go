package sipmsg

import (
	"net/netip"
	"testing"

	sipgo "github.com/emiago/sipgo/sip"
)

// TestURI_Parse proves that URIs are read, also with a number sign in the user part or without a user before the @:
// https://github.com/onsip/SIP.js/issues/560
// https://github.com/aboutsip/pkts/issues/39
func TestURI_Parse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]URI{
		"sip:alice@example.com":                         {Scheme: "sip", User: "alice", Host: "example.com"},
		"SIPS:al%20ice:pw@[2001:db8::1]:5061;lr;x=y":    {Scheme: "sips", User: "al ice", Host: "2001:db8::1", Port: 5061, Params: "lr;x=y"},
		"tel:+49301234567;phone-context=example.com":    {Scheme: "tel", User: "+49301234567", Params: "phone-context=example.com"},
		"sip:user;par=u%40example.net@example.com":      {Scheme: "sip", User: "user;par=u@example.net", Host: "example.com"},
		"sip:PBX#1000#9@192.0.2.1":                      {Scheme: "sip", User: "PBX#1000#9", Host: "192.0.2.1"},
		"sip:@192.0.2.1:5062;lr":                        {Scheme: "sip", Host: "192.0.2.1", Port: 5062, Params: "lr"},
		"sip:example.com:5060;transport=tcp?Replaces=1": {Scheme: "sip", Host: "example.com", Port: 5060, Params: "transport=tcp", query: "Replaces=1"},
	} {
		got, err := ParseURI(text)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "sip:", "alice", "sip:a b@c", "<sip:a@b>", "sip:a@[::1", "sip:a@b:99999", "sip:a@b:x", "sip:a@", "1sip:a@b", "sip:a@b/c", "sip:x@y\r\nX: 1"} {
		if u, err := ParseURI(bad); err == nil {
			t.Errorf("%q reads %+v, want an error", bad, u)
		}
	}
}

const benchmarkInvite = "INVITE sip:bob@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bKi1;rport\r\nMax-Forwards: 70\r\n" +
	"From: <sip:a@b>;tag=1\r\nTo: <sip:bob@127.0.0.1>\r\nCall-ID: c1\r\nCSeq: 1 INVITE\r\nContact: <sip:a@192.0.2.1>\r\nContent-Length: 0\r\n\r\n"

func BenchmarkParseAndRead(b *testing.B) {
	raw, source := benchmarkInvite, netip.MustParseAddrPort("192.0.2.1:5060")
	var m Message
	b.ReportAllocs()
	for b.Loop() {
		m.Parse(raw, source)
		if m.ReadMandatory() != nil || m.Validate("INVITE") != nil {
			b.Fatal("refused")
		}
	}
}

func BenchmarkCodecOfSipgo(b *testing.B) { // for comparison
	raw := []byte(benchmarkInvite)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sipgo.ParseMessage(raw); err != nil {
			b.Fatal(err)
		}
	}
}
