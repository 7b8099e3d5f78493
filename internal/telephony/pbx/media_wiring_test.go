package pbx

import (
	"slices"
	"testing"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/protocol/media"
)

// connectedCall returns a call with connected legs.
func connectedCall(roles ...string) (*liveCall, []*leg) {
	c := &liveCall{sw: &Switch{cfg: Config{Clock: clock.System()}}}
	for _, r := range roles {
		l := c.newLeg(r)
		l.answered, l.stream = time.Now(), &media.Stream{}
	}
	c.a, c.b = c.legs[0], c.legs[1]
	return c, c.legs
}

func (c *liveCall) heardBy(l *leg) []*leg { return c.hearing(c.talking())[l] }

func sameLegs(a, b []*leg) bool {
	if len(a) != len(b) {
		return false
	}
	for _, l := range a {
		if !slices.Contains(b, l) {
			return false
		}
	}
	return true
}

func TestHearing_TwoParties(t *testing.T) {
	t.Parallel()
	c, legs := connectedCall("caller", "agent")
	if !sameLegs(c.heardBy(legs[0]), legs[1:]) || !sameLegs(c.heardBy(legs[1]), legs[:1]) {
		t.Error("the two sides do not hear each other")
	}
}

func TestHearing_HeldOrIsolated(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*leg){
		"on hold": func(l *leg) { l.heldAPI = true }, "apart": func(l *leg) { l.isolated = true },
	} {
		c, legs := connectedCall("caller", "agent", "agent")
		set(legs[0])
		if len(c.heardBy(legs[0])) > 0 {
			t.Errorf("a leg %s hears somebody", name)
		}
		if !sameLegs(c.heardBy(legs[1]), legs[2:]) {
			t.Errorf("the others hear somebody else than each other beside a leg %s", name)
		}
	}
}

func TestHearing_MonitorModes(t *testing.T) {
	t.Parallel()
	for _, m := range []struct {
		mode          string
		caller, agent int
	}{{"listen", 1, 1}, {"whisper", 1, 2}, {"barge", 2, 2}} {
		c, legs := connectedCall("caller", "agent", "monitor")
		c.b.caller.UserID = "usr_1"
		c.monitors = []*monitor{{mode: m.mode, leg: legs[2]}}
		if !sameLegs(c.heardBy(legs[2]), legs[:2]) {
			t.Errorf("%s: the supervisor does not hear both", m.mode)
		}
		if a, b := len(c.heardBy(legs[0])), len(c.heardBy(legs[1])); a != m.caller || b != m.agent {
			t.Errorf("%s: the caller hears %d, the agent %d; want %d and %d", m.mode, a, b, m.caller, m.agent)
		}
	}
}

func TestTopologyKey_EqualTopologies(t *testing.T) {
	t.Parallel()
	c, legs := connectedCall("caller", "agent", "agent")
	first := topologyKey(c.hearing(c.talking()))
	if again := topologyKey(c.hearing(c.talking())); again != first {
		t.Errorf("the same topology has two fingerprints: %s, %s", first, again)
	}
	legs[2].isolated = true
	if topologyKey(c.hearing(c.talking())) == first {
		t.Error("another topology has the same fingerprint")
	}
}
