package e2e

import (
	"fmt"
	"slices"
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

// officeAt is an office whose SIP is where it was when the server starts again, with Ada's telephone connected to it. A baresip
// whose connection is gone makes another when it is time to register.
func officeAt(t *testing.T, transport string) *office {
	t.Helper()
	at := fmt.Sprintf("127.0.0.1:%d", rig.FreePort(t))
	o := &office{site: newSite(rig.Start(t, rig.Options{Env: quiet, Flags: []string{"--sip", at}}))}
	o.ada, o.bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{Auto: true, Transport: transport, Register: 60})
	o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
	return o
}

func TestACallGoesOnWhenItsPhoneHasConnectedAgain(t *testing.T) {
	t.Parallel()
	o := officeAt(t, "tcp")
	path := o.call()
	o.Server.Kill()
	o.Server.Start()
	rig.Until(t, "Ada's telephone is back", time.Minute, func() bool { return slices.Contains(o.kinds(path), "leg.back") })
	o.talks("Ada after the crash", o.adaPhone, bobTone)
	o.talks("Bob after the crash", o.bobPhone, adaTone)
	o.Want(200, "POST", path+"/end", map[string]any{}, nil)
	o.adaPhone.Wait("CALL_CLOSED", "")
	o.bobPhone.Wait("CALL_CLOSED", "")
	if r := o.record(o.ada.Extension); r.String() != "internal completed api api 0" {
		t.Errorf("record: %s", r)
	}
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
