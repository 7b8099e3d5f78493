package pbx

import (
	"testing"

	"soniq/internal/protocol/sip"
)

func TestCalledNumber_FromRequestURIOrTo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ uri, to, want string }{
		{"+12025550143", "+12025550199", "+12025550143"}, // the dialled string counts if it is a number
		{"2025550143;npdi", "customer-7", "2025550143"},
		{"customer-7", "+12025550143", "+12025550143"}, // our contact
		{"customer-7", "2025550143", "2025550143"},
		{"customer-7", "customer-7", "customer-7"}, // no header has a number
		{"", "", ""},
	} {
		in := &sip.Inbound{RequestURI: sip.URI{User: c.uri}, To: sip.Address{URI: sip.URI{User: c.to}}}
		if got := calledNumber(in, "US"); got != c.want {
			t.Errorf("to %q, with %q in To: %q, want %q", c.uri, c.to, got, c.want)
		}
	}
}
