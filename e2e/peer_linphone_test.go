package e2e

import (
	"testing"

	"soniq/e2e/rig"
)

// withLinphone is an office where Bob has a linphonec instead.
func withLinphone(t *testing.T) (*office, *rig.Linphone) {
	t.Helper()
	s := rig.Start(t, rig.Options{Env: quiet})
	o := &office{site: newSite(s)}
	o.ada, o.bob, o.carol = o.AddUser("Ada"), o.AddUser("Bob"), o.AddUser("Carol")
	say, _ := tone(t, bobTone)
	bob := s.Linphone(o.bob.SIP, rig.LinphoneOptions{Say: say, Auto: true})
	o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{Auto: true})
	o.carolPhone = o.phone(o.carol, carolTone, rig.PhoneOptions{Auto: true})
	return o, bob
}

func TestLinphoneCallsAndIsCalled(t *testing.T) {
	t.Parallel()
	o, bob := withLinphone(t)
	bob.Dial(o.ada.Extension)
	o.talks("Bob, who called,", bob, adaTone)
	o.talks("Ada, who was called,", o.adaPhone, bobTone)
	bob.Do("terminate")
	o.adaPhone.Wait("CALL_CLOSED", "")
	if r := o.record(o.ada.Extension); r.String() != "internal completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
	o.adaPhone.Dial(o.bob.Extension)
	o.talks("Ada, who called,", o.adaPhone, bobTone)
	o.adaPhone.Do("hangup", "")
	bob.Wait(`Call \d+ with .* ended`)
}

// What is held by request must be heard; linphonec listens on when it is told a=sendonly.
func TestOneOnHoldHearsMusic(t *testing.T) {
	t.Parallel()
	o, bob := withLinphone(t)
	bob.Dial(o.ada.Extension)
	o.talks("Bob", bob, adaTone)
	path := "/calls/" + o.live(nil)["id"].(string)
	o.Want(200, "POST", path+"/hold", map[string]any{}, nil)
	o.music("Bob, on hold,", bob)
	o.Want(200, "POST", path+"/unhold", map[string]any{}, nil)
	o.talks("Bob after the hold", bob, adaTone)
	o.talks("Ada after the hold", o.adaPhone, bobTone)
}

func TestAPhoneTransfersAfterAsking(t *testing.T) {
	t.Parallel()
	o, bob := withLinphone(t)
	dave := o.AddUser("Dave") // who is to be heard while held
	say, _ := tone(t, adaTone)
	davePhone := o.Server.Linphone(dave.SIP, rig.LinphoneOptions{Say: say})
	davePhone.Dial(o.bob.Extension)
	first := bob.Wait(`Call (\d+) with .* connected`)[1]
	o.talks("Dave", davePhone, bobTone)
	id := o.live(nil)["id"]
	bob.Do("pause")
	second := bob.Dial(o.carol.Extension)
	o.talks("Dave, waiting,", davePhone, bobTone) // the music linphonec holds with is the file it speaks
	o.talks("Carol, asked,", o.carolPhone, bobTone)
	bob.Do("transfer " + first + " --to-call " + second)
	bob.Wait(`Call ` + first + ` with .* ended`)
	o.talks("Dave, transferred,", davePhone, carolTone)
	o.talks("Carol, transferred to,", o.carolPhone, adaTone)
	if c := o.live(nil); c["id"] != id || c["agent_id"] != o.carol.ID {
		t.Errorf("transferred call: %v", c)
	}
	davePhone.Do("terminate")
	o.carolPhone.Wait("CALL_CLOSED", "")
	for _, r := range o.records(2, "") {
		want := "internal completed transfer agent 0"
		if r.CallID == id {
			want = "internal completed caller_hangup caller 0"
		}
		if r.String() != want {
			t.Errorf("record of %s: %s; want %s", r.CallID, r, want)
		}
	}
}
