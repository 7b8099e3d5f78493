package admission

import (
	"testing"

	"soniq/internal/platform/limit"
)

func TestCalls_LimitsOfEachParty(t *testing.T) {
	t.Parallel()
	most := Limits{Device: 2, User: 3, Organisation: 4}
	for _, x := range []struct {
		name string
		p    func(n int) Parties
		want *limit.Limit
		fits int
	}{
		{"device", func(int) Parties { return Parties{"dev", "usr", "org"} }, limit.CallsOfDevice, 2},
		{"user with many devices", func(n int) Parties { return Parties{string(rune('a' + n)), "usr", "org"} }, limit.CallsOfUser, 3},
		{"organisation with many users", func(n int) Parties { return Parties{"", string(rune('a' + n)), "org"} }, limit.CallsOfOrganisation, 4},
		{"inbound", func(int) Parties { return Parties{Org: "org"} }, limit.CallsOfOrganisation, 4},
	} {
		var c Calls
		for n := range x.fits {
			if full := c.Enter(x.p(n), most); full != nil {
				t.Errorf("%s: call %d was refused: %v", x.name, n+1, full)
			}
		}
		if full := c.Enter(x.p(x.fits), most); full == nil || full.Limit != x.want {
			t.Errorf("%s: one call more was refused by %v", x.name, full)
		}
		c.EnterAlways(x.p(x.fits))
		c.Leave(x.p(x.fits))
		c.Leave(x.p(0))
		if full := c.Enter(x.p(0), most); full != nil {
			t.Errorf("%s: refused after a call ended: %v", x.name, full)
		}
	}
}

func TestCalls_KeepNoEndedParties(t *testing.T) {
	t.Parallel()
	var c Calls
	c.Enter(Parties{"dev", "usr", "org"}, Limits{})
	if c.Running("org") != 1 || c.Running("dev") != 1 {
		t.Error("the call is not counted")
	}
	if c.Leave(Parties{"dev", "usr", "org"}); len(c.running) != 0 {
		t.Errorf("left in memory: %v", c.running)
	}
}
