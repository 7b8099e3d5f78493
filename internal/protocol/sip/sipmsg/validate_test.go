package sipmsg

import (
	"net/netip"
	"testing"
)

// Own trial beside https://github.com/pjsip/pjproject/issues/480.
func TestReadMandatory_TabsAsWhiteSpace(t *testing.T) {
	t.Parallel()
	for _, seq := range []string{"1 INVITE", "1\tINVITE", "1 \t INVITE", "1\r\n\tINVITE"} {
		m := &Message{}
		raw := "INVITE sip:b@x SIP/2.0\r\nVia:\tSIP/2.0/UDP\t192.0.2.1\t;branch=z9hG4bK1\r\nFrom:\tA\t<sip:a@x>\t;\ttag=1\r\nTo\t:\t<sip:b@x>\r\n" +
			"Call-ID:\t1\t\r\nCSeq:\t" + seq + "\r\nMax-Forwards:\t70\r\nContact:\t<sip:a@x>\t;q=1\r\nContent-Length:\t0\r\n\r\n"
		if err := m.Parse(raw, netip.AddrPort{}); err != nil {
			t.Fatal(err)
		}
		if r := m.ReadMandatory(); r != nil || m.CSeq != 1 || m.CSeqMethod != "INVITE" || m.From.Tag != "1" || m.CallID != "1" {
			t.Errorf("%q: %+v", seq, r)
		}
		if r := m.Validate("INVITE"); r != nil {
			t.Errorf("%q: %+v", seq, r)
		}
	}
	for _, seq := range []string{"", "1", "INVITE", "1\t", "x\tINVITE"} {
		m := &Message{Fields: []Field{{Kind: FieldCSeq, Value: seq}}}
		if m.readSeq() == nil {
			t.Errorf("%q is accepted", seq)
		}
	}
}
