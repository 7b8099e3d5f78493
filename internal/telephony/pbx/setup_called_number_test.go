package pbx

import (
	"strings"
	"testing"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
)

func TestCalledNumbers_Order(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		uri, to   string
		registers bool
		want      string
	}{
		{"+12025550143", "+12025550199", false, "+12025550143"}, // forwarded by the carrier
		{"2025550143;npdi", "customer-7", false, "2025550143"},
		{"customer-7", "+12025550143", false, "+12025550143"},
		{"customer-7", "customer-7", false, "customer-7"}, // no header has a number
		{"", "", false, ""},
		{"customer-7", "2025550143", true, "2025550143"},
		{"+12025550143", "+12025550199", true, "+12025550199 +12025550143"}, // the contact is the number that was once the only one
		{"+12025550143", "customer-7", true, "+12025550143"},
		{"customer-7", "customer-7", true, "customer-7"},
	} {
		in := &sip.Inbound{RequestURI: sipmsg.URI{User: c.uri}, To: sipmsg.Address{URI: sipmsg.URI{User: c.to}}}
		if got := strings.Join(calledNumbers(in, TrunkIn{Country: "US", Registers: c.registers}), " "); got != c.want {
			t.Errorf("request URI %q, To %q, registers %v: %q, want %q", c.uri, c.to, c.registers, got, c.want)
		}
	}
}
