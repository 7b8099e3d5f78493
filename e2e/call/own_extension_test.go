package call

import (
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// TestOwnExtension_RingsOwnPhone proves that a user who dials their own extension rings their own phone, as on a phone with two lines. The
// call can be answered, and it can be cancelled.
//
// https://github.com/lehel-twilio/plugin-dialpad/issues/15
func TestOwnExtension_RingsOwnPhone(t *testing.T) {
	t.Parallel()
	o := fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--media-timeout", "0"}}))
	rings := make(chan *fixture.IncomingCall, 2)
	ada := o.AddHandset("Ada", rings)
	dial := func() (*fixture.OutgoingCall, *fixture.IncomingCall) {
		t.Helper()
		d := ada.Dial(ada.User.Extension)
		return d, fixture.NextRinging(t, rings)
	}
	d, r := dial()
	r.Answer()
	d.WaitAnswered()
	o.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })
	d.HangUp()
	r.WaitStopped()
	d, r = dial()
	d.Leg.Cancel()
	r.WaitStopped()
	if end := d.WaitEnd(); end != "487" {
		t.Errorf("the cancelled call ended with %s", end)
	}
	all := o.CDRs(2, "")
	if got := all[1].String(); got != "internal completed caller_hangup caller 0" {
		t.Errorf("record of the answered call: %s", got)
	}
	if got := all[0].String(); got != "internal canceled canceled caller 487" {
		t.Errorf("record of the cancelled call: %s", got)
	}
}
