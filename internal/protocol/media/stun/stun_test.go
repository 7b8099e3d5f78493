package stun

import (
	"bytes"
	"net/netip"
	"testing"

	"soniq/internal/protocol/media/mediatest"
)

func TestSTUN_RFC5769Vectors(t *testing.T) {
	t.Parallel()
	b := mediatest.HexBytes(t, mediatest.STUNRequest)
	m, ok := Parse(b)
	if !ok || m.Kind != Request || string(m.Username) != "evtj:h6vY" || m.Priority != 0x6e0001ff || !m.Controlled ||
		m.TieBreaker != 0x932ff9b151263b36 {
		t.Fatalf("%v %+v", ok, m)
	}
	if !m.Authenticates(b, mediatest.MacOf(mediatest.STUNPassword)) || m.Authenticates(b, mediatest.MacOf("another")) {
		t.Error("the password is not checked as it should be")
	}
	for i := range m.integrity + 24 { // every change is detected
		c := bytes.Clone(b)
		c[i] ^= 1
		if m, ok := Parse(c); ok && m.Authenticates(c, mediatest.MacOf(mediatest.STUNPassword)) {
			t.Errorf("byte %d can be changed", i)
		}
	}
	r := mediatest.HexBytes(t, mediatest.STUNResponse)
	if m, ok := Parse(r); !ok || m.Kind != Success || !m.Authenticates(r, mediatest.MacOf(mediatest.STUNPassword)) {
		t.Errorf("response %v %+v", ok, m)
	}
}

func TestSTUN_WriterRoundTrip(t *testing.T) {
	t.Parallel()
	var w Writer
	w.Begin(Success, TransactionID{1, 2, 3})
	w.AddXORMappedAddress(netip.MustParseAddrPort("192.0.2.1:32853"))
	b := w.End(mediatest.MacOf("p"))
	want := mediatest.HexBytes(t, "00200008 0001a147e112a643") // as in RFC 5769 §2.2
	if !bytes.Equal(b[HeaderLen:HeaderLen+12], want) {
		t.Errorf("mapped address %x", b[HeaderLen:HeaderLen+12])
	}
	if m, ok := Parse(b); !ok || m.Tx != (TransactionID{1, 2, 3}) || !m.Authenticates(b, mediatest.MacOf("p")) {
		t.Errorf("%v %+v", ok, m)
	}
	w.Begin(Success, TransactionID{})
	w.AddXORMappedAddress(netip.MustParseAddrPort("[2001:db8::1]:1"))
	if _, ok := Parse(w.End(mediatest.MacOf("p"))); !ok {
		t.Error("IPv6 answer not read")
	}
}
