package media

import (
	"testing"
	"time"
)

// without is what phones speak that take no events.
func without(c Codec) []Format { return g711(c, 101)[:1] }

// A phone that agreed to no events hears the other's keys as tones, each once, also those pressed faster than tones are said;
// beside them it hears what is said.
func TestEventsAreTonesForWhoTakesNone(t *testing.T) {
	t.Parallel()
	for _, codec := range []Codec{PCMU, PCMA} {
		t.Run(codec.String(), func(t *testing.T) {
			t.Parallel()
			eachLoop(t, func(t *testing.T, e *Engine) {
				c := newTestCall(t, e)
				connect(c.callee, c.b, without(codec))
				ear := listen(c.callee)
				if err := c.caller.SendDTMF(t.Context(), "1590*#AD", DTMFOptions{Duration: 60 * time.Millisecond, Gap: 40 * time.Millisecond}); err != nil {
					t.Fatal(err)
				}
				ear.wait(t, func() bool { return ear.digits == "1590*#AD" })
				if n := c.callee.Stats().DTMF; n != 0 {
					t.Errorf("%d events were sent to a phone that takes none", n)
				}
				hum(t, c.caller, 440)
				ear.hears(t, "the phone afterwards", 440)
			})
		})
	}
}

// A key is pressed as an event where events were agreed, else as tones, and not at all where neither can be sent.
func TestAKeyIsPressedTheWayALegTakesIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		formats []Format
		events  uint64
	}{
		"events": {g711(PCMU, 101), 3},
		"tones":  {without(PCMU), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := testEngine(t, Config{}, newLoop)
			phone, leg := open(t, e), open(t, e)
			connect(phone, leg, c.formats)
			ear := listen(phone)
			for _, d := range "7#B" {
				if !leg.Press(d, 80*time.Millisecond) {
					t.Errorf("%c was not pressed", d)
				}
			}
			ear.wait(t, func() bool { return ear.digits == "7#B" })
			if n := phone.Stats().DTMF; n != c.events {
				t.Errorf("the phone got %d events, want %d", n, c.events)
			}
			if leg.Press('x', 0) {
				t.Error("x was pressed")
			}
			leg.SetDirection(false, true)
			if leg.Press('1', 0) {
				t.Error("a key was pressed on a leg that may not send")
			}
			leg.Close()
			if leg.Press('1', 0) {
				t.Error("a key was pressed on a closed leg")
			}
		})
	}
}
