package transfer

import (
	"testing"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestConference_AddAndRemoveParticipant(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	path := o.ConnectCall()
	var leg struct{ ID string }
	o.Want(201, "POST", path+"/participants", map[string]any{"to": o.Carol.Extension}, &leg)
	o.CarolPhone.Wait("CALL_ESTABLISHED", "")
	o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone, fixture.CarolTone)
	o.HearsOnly("Carol", o.CarolPhone, fixture.AdaTone, fixture.BobTone)
	o.Want(204, "DELETE", path+"/participants/"+leg.ID, nil, nil)
	o.CarolPhone.Wait("CALL_CLOSED", "")
	o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone)
	o.HearsOnly("Bob", o.BobPhone, fixture.AdaTone)
}

// TestConference_OnePartyHolds lets the phone of each party hold a conference in turn. The others go on talking, without music.
//
// https://github.com/jitsi/jigasi/issues/248
// https://github.com/signalwire/freeswitch/issues/796
func TestConference_OnePartyHolds(t *testing.T) {
	t.Parallel()
	for i, name := range []string{"caller", "callee", "participant"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--media-timeout", "0"}}))
			path := o.ConnectCall()
			o.Want(201, "POST", path+"/participants", map[string]any{"to": o.Carol.Extension}, nil)
			o.CarolPhone.Wait("CALL_ESTABLISHED", "")
			o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone, fixture.CarolTone)
			phones := []*rig.Phone{o.AdaPhone, o.BobPhone, o.CarolPhone}
			tones := []float64{fixture.AdaTone, fixture.BobTone, fixture.CarolTone}
			one, two := (i+1)%3, (i+2)%3
			phones[i].Do("hold", "")
			o.LiveCall(func(c map[string]any) bool { return c["status"] == "on_hold" })
			o.HearsOnly("one who is not held", phones[one], tones[two])
			o.HearsOnly("the other who is not held", phones[two], tones[one])
			phones[i].Do("resume", "")
			o.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })
			o.HearsOnly("one after the hold", phones[one], tones[two], tones[i])
		})
	}
}

func TestConference_RespondAsync(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	path := o.ConnectCall()
	accepted := func(path string, body map[string]any) string {
		r := o.Do("POST", path, body, "Prefer", "respond-async")
		if x := r.JSON(); r.Status != 202 || x["status"] != "ringing" {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		return r.JSON()["id"].(string)
	}
	m := accepted(path+"/monitor", map[string]any{"user_id": o.Carol.ID})
	o.CarolPhone.Wait("CALL_ESTABLISHED", "")
	o.HearsOnly("Carol, listening,", o.CarolPhone, fixture.AdaTone, fixture.BobTone)
	o.Want(200, "PATCH", path+"/monitor/"+m, map[string]any{"mode": "barge"}, nil)
	o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone, fixture.CarolTone)
	o.Want(204, "DELETE", path+"/monitor/"+m, nil, nil)
	o.CarolPhone.Wait("CALL_CLOSED", "")
	leg := accepted(path+"/participants", map[string]any{"to": o.Carol.Extension})
	o.CarolPhone.Wait("CALL_ESTABLISHED", "")
	o.HearsOnly("Carol, added,", o.CarolPhone, fixture.AdaTone, fixture.BobTone)
	o.Want(204, "DELETE", path+"/participants/"+leg, nil, nil)
	o.CarolPhone.Wait("CALL_CLOSED", "")
	o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone)
}
