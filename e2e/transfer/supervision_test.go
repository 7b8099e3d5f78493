package transfer

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestSupervision_ListenWhisperBarge(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	_, monitor := o.SuperviseCall()
	o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone)
	o.HearsOnly("Bob", o.BobPhone, fixture.AdaTone)
	o.Want(200, "PATCH", monitor, map[string]any{"mode": "whisper"}, nil)
	o.HearsOnly("Bob, whispered to,", o.BobPhone, fixture.AdaTone, fixture.CarolTone)
	o.HearsOnly("Ada, not whispered to,", o.AdaPhone, fixture.BobTone)
	o.Want(200, "PATCH", monitor, map[string]any{"mode": "barge"}, nil)
	o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone, fixture.CarolTone)
	o.HearsOnly("Bob", o.BobPhone, fixture.AdaTone, fixture.CarolTone)
	o.Want(204, "DELETE", monitor, nil, nil)
	o.CarolPhone.Wait("CALL_CLOSED", "")
	o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone)
	o.HearsOnly("Bob", o.BobPhone, fixture.AdaTone)
	o.AdaPhone.Do("hangup", "")
	o.BobPhone.Wait("CALL_CLOSED", "")
	r := o.CDR(o.Ada.Extension)
	both := o.RecordingAudio(o.Recording(r.CallID).ID, "").PCM
	fixture.HearsNot(t, "the left channel", both[0], fixture.CarolTone, 200*time.Millisecond)
	fixture.HearsNot(t, "the right channel", both[1], fixture.CarolTone, 200*time.Millisecond)
}

// Several requests at once to let the same user supervise a call ring the user's phone once.
func TestMonitor_SimultaneousRequestsRingOnce(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	path := o.ConnectCall()
	ids := make(chan string, 8)
	for range cap(ids) {
		go func() {
			id, _ := o.Do("POST", path+"/monitor", map[string]any{"user_id": o.Carol.ID}).JSON()["id"].(string)
			ids <- id
		}()
	}
	first := <-ids
	for range cap(ids) - 1 {
		if id := <-ids; id != first || id == "" {
			t.Errorf("monitors %q and %q", first, id)
		}
	}
	o.CarolPhone.Wait("CALL_ESTABLISHED", "")
	rung := 0
	for _, kind := range o.TimelineSteps(path) {
		if kind == "monitor.ringing" {
			rung++
		}
	}
	if rung != 1 {
		t.Errorf("the supervisor was rung %d times", rung)
	}
}
