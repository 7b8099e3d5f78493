package e2e

import (
	"testing"
	"time"

	"soniq/e2e/rig"
)

func TestACallGoesOnAfterTheServerWasKilled(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		o := newOffice(s)
		path := o.call()
		s.Kill()
		s.Start()
		o.talks("Ada after the crash", o.adaPhone, bobTone)
		o.talks("Bob after the crash", o.bobPhone, adaTone)
		o.Want(200, "POST", path+"/hold", map[string]any{}, nil)
		o.talks("Bob beside the hold", o.bobPhone)
		o.Want(200, "POST", path+"/unhold", map[string]any{}, nil)
		o.talks("Bob after the hold", o.bobPhone, adaTone)
		o.bobPhone.Do("hangup", "")
		o.adaPhone.Wait("CALL_CLOSED", "")
		r := o.record(o.ada.Extension)
		if r.String() != "internal completed agent_hangup agent 0" {
			t.Errorf("record: %s", r)
		}
		both := o.audio(o.recording(r.CallID).ID, "").PCM
		hears(t, "the left channel, before and after the crash,", both[0], adaTone, 4*time.Second)
		hears(t, "the right channel, before and after the crash,", both[1], bobTone, 4*time.Second)
	})
}

func TestACallWhoseSidesHungUpDuringACrashIsClosed(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	o.call()
	o.Server.Kill()
	o.adaPhone.Close()
	o.bobPhone.Close()
	o.Server.Start()
	if r := o.record(o.ada.Extension); r.String() != "internal completed node_crash system 0" {
		t.Errorf("record: %s", r)
	}
}
