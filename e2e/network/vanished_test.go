package network

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// If a telephone vanishes without a BYE, the call of the other side ends. Over UDP a vanished telephone has the 32 s
// of a transaction to answer; a closed connection ends the call at once.
func TestVanishedPhone_CallEnds(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 90*time.Second, "the re-INVITE to a phone that is gone ends after 32 s")
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--media-timeout", "2s"}})
	company := fixture.NewOrg(s)
	for _, transport := range []string{"udp", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			o := &fixture.Office{Org: company.In(t)}
			o.Ada, o.Bob = o.AddUser("Ada-"+transport), o.AddUser("Bob-"+transport)
			o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{})
			o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true, Transport: transport})
			o.AdaPhone.Dial(o.Bob.Extension)
			o.AdaPhone.Listen(time.Second)
			o.BobPhone.Vanish()
			gone := time.Now()
			o.AdaPhone.Wait("CALL_CLOSED", "")
			t.Logf("Ada was told after %s", time.Since(gone))
			r := o.CDR(o.Ada.Extension)
			if got := r.String(); got != "internal completed media_timeout system 0" {
				t.Errorf("record: %s", got)
			}
			if talk := time.Duration(r.Talk) * time.Second; talk > time.Since(gone)+3*time.Second || r.AnsweredAt == nil {
				t.Errorf("record: %+v, %s after it was gone", r, time.Since(gone))
			}
			told := o.Webhook.Wait("call.ended", 10*time.Second, func(e rig.Event) bool { return e.Data["call_id"] == r.CallID })
			if told.Data["end_reason"] != "media_timeout" {
				t.Errorf("call.ended: %v", told.Data)
			}
		})
	}
}
