package recovery

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

func TestKill_CallGoesOn(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 60*time.Second, "audio is heard before the kill, after it, and around a hold")
	rig.Each(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o := fixture.NewOffice(s)
		path := o.ConnectCall()
		s.Kill()
		s.Start()
		o.HearsOnly("Ada after the crash", o.AdaPhone, fixture.BobTone)
		o.HearsOnly("Bob after the crash", o.BobPhone, fixture.AdaTone)
		o.Want(200, "POST", path+"/hold", map[string]any{}, nil)
		o.HearsOnly("Bob beside the hold", o.BobPhone)
		o.Want(200, "POST", path+"/unhold", map[string]any{}, nil)
		o.HearsOnly("Bob after the hold", o.BobPhone, fixture.AdaTone)
		o.BobPhone.Do("hangup", "")
		o.AdaPhone.Wait("CALL_CLOSED", "")
		r := o.CDR(o.Ada.Extension)
		if r.String() != "internal completed agent_hangup agent 0" {
			t.Errorf("record: %s", r)
		}
		both := o.RecordingAudio(o.Recording(r.CallID).ID, "").PCM
		fixture.Hears(t, "the left channel, before and after the crash,", both[0], fixture.AdaTone, 4*time.Second)
		fixture.Hears(t, "the right channel, before and after the crash,", both[1], fixture.BobTone, 4*time.Second)
	})
}

// officeAt makes an office with a fixed SIP address, so that the server has the same address after a restart. Ada's telephone is
// connected to it. A baresip that has lost its connection opens another when its registration is due.
func officeAt(t *testing.T, transport string) *fixture.Office {
	t.Helper()
	at := fmt.Sprintf("127.0.0.1:%d", rig.FreePort(t))
	o := &fixture.Office{Org: fixture.NewOrg(rig.Start(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--sip", at}}))}
	o.Ada, o.Bob = o.AddUser("Ada"), o.AddUser("Bob")
	o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{Auto: true, Transport: transport, Register: 60})
	o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
	return o
}

func TestKill_TCPPhoneReconnects(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 90*time.Second, "the phone connects again when it registers, after a minute")
	o := officeAt(t, "tcp")
	path := o.ConnectCall()
	o.Server.Kill()
	o.Server.Start()
	rig.Until(t, "Ada's telephone is back", time.Minute, func() bool { return slices.Contains(o.TimelineSteps(path), "leg.reconnected") })
	o.HearsOnly("Ada after the crash", o.AdaPhone, fixture.BobTone)
	o.HearsOnly("Bob after the crash", o.BobPhone, fixture.AdaTone)
	o.Want(200, "POST", path+"/end", map[string]any{}, nil)
	o.AdaPhone.Wait("CALL_CLOSED", "")
	o.BobPhone.Wait("CALL_CLOSED", "")
	if r := o.CDR(o.Ada.Extension); r.String() != "internal completed api api 0" {
		t.Errorf("record: %s", r)
	}
}

func TestKill_HangupMeanwhileClosesCall(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 45*time.Second, "both phones are ended beside a server that is gone")
	o := fixture.NewOffice(rig.Start(t, rig.Options{Env: fixture.NoSpeech}))
	o.ConnectCall()
	o.Server.Kill()
	o.AdaPhone.Close()
	o.BobPhone.Close()
	o.Server.Start()
	if r := o.CDR(o.Ada.Extension); r.String() != "internal completed node_crash system 0" {
		t.Errorf("record: %s", r)
	}
}
