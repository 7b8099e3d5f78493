package e2e

import (
	"testing"
	"time"

	"soniq/e2e/rig"
)

// Neither side's call may go on for ever when the other one's telephone is gone without a word. Over UDP it is given the 32 s of
// a transaction to answer; a connection that is closed tells at once.
func TestACallEndsWhenATelephoneVanishes(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet, Flags: []string{"--media-timeout", "2s"}})
	company := newSite(s)
	for _, transport := range []string{"udp", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			o := &office{site: company.in(t)}
			o.ada, o.bob = o.AddUser("Ada-"+transport), o.AddUser("Bob-"+transport)
			o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{})
			o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true, Transport: transport})
			o.adaPhone.Dial(o.bob.Extension)
			o.adaPhone.Listen(time.Second)
			o.bobPhone.Vanish()
			gone := time.Now()
			o.adaPhone.Wait("CALL_CLOSED", "")
			t.Logf("Ada was told after %s", time.Since(gone))
			r := o.record(o.ada.Extension)
			if got := r.String(); got != "internal completed media_timeout system 0" {
				t.Errorf("record: %s", got)
			}
			if talk := time.Duration(r.Talk) * time.Second; talk > time.Since(gone)+3*time.Second || r.AnsweredAt == nil {
				t.Errorf("record: %+v, %s after it was gone", r, time.Since(gone))
			}
			told := o.hooks.Wait("call.ended", 10*time.Second, func(e rig.Event) bool { return e.Data["call_id"] == r.CallID })
			if told.Data["end_reason"] != "media_timeout" {
				t.Errorf("call.ended: %v", told.Data)
			}
		})
	}
}
