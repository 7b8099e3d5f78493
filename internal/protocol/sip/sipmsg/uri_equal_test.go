package sipmsg

import "testing"

// RFC 3261 section 19.1.4.
func TestSameURI_RFCExamples(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"sip:%61lice@atlanta.com;transport=TCP", "sip:alice@AtlanTa.CoM;Transport=tcp", true},
		{"sip:carol@chicago.com", "sip:carol@chicago.com;newparam=5", true},
		{"sip:carol@chicago.com;security=on", "sip:carol@chicago.com;newparam=5", true},
		{"sip:biloxi.com;transport=tcp;method=REGISTER", "sip:biloxi.com;method=REGISTER;transport=tcp", true},
		{"SIP:a@192.0.2.7", "sip:a@192.0.2.7", true},
		{"sip:ALICE@AtlanTa.CoM;Transport=udp", "sip:alice@AtlanTa.CoM;Transport=UDP", false},
		{"sip:bob@biloxi.com", "sip:bob@biloxi.com:5060", false},
		{"sip:bob@biloxi.com", "sip:bob@biloxi.com;transport=udp", false},
		{"sip:carol@chicago.com;security=on", "sip:carol@chicago.com;security=off", false},
		{"sip:bob@biloxi.com", "sips:bob@biloxi.com", false},
		{"sip:bob@[2001:db8::1]", "sip:bob@[2001:DB8::1]", true},
		{"tel:+1", "tel:+1", true}, {"tel:+1", "tel:+2", false}, {"", "", true}, {"sip:", "sip:a", false},
	} {
		if got := SameURI(c.a, c.b); got != c.same || SameURI(c.b, c.a) != got {
			t.Errorf("%s and %s: same %v, want %v", c.a, c.b, got, c.same)
		}
	}
}
