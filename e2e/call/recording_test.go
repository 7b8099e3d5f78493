package call

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestRecording_Pause(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	path := o.ConnectCall()
	o.Want(200, "POST", path+"/recording/pause", map[string]any{"reason": "payment"}, nil)
	o.Want(200, "POST", path+"/mute", map[string]any{}, nil) // Bob is muted, so the audio of Ada's phone alone shows the time
	fixture.LetCallRun(t, 3*time.Second)
	o.HearsOnly("Ada, Bob being mute,", o.AdaPhone)
	o.Want(200, "POST", path+"/unmute", map[string]any{}, nil)
	o.Want(200, "POST", path+"/recording/resume", map[string]any{}, nil)
	o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone)
	o.AdaPhone.Do("hangup", "")
	o.BobPhone.Wait("CALL_CLOSED", "")
	r := o.CDR(o.Ada.Extension)
	rec := o.Recording(r.CallID)
	both := o.RecordingAudio(rec.ID, "").PCM
	least := fixture.SampleDuration(len(both[0])) - 3*time.Second
	fixture.Hears(t, "the left channel", both[0], fixture.AdaTone, 2*time.Second)
	fixture.HearsNot(t, "the left channel, less the pause,", both[0], fixture.AdaTone, least)
	fixture.HearsNot(t, "the right channel, less the pause,", both[1], fixture.BobTone, least)
}

func TestRecording_Mono(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	path := o.ConnectCall()
	o.Want(200, "POST", path+"/recording/stop", nil, nil)
	o.Want(200, "POST", path+"/recording/start", map[string]any{"channels": 1}, nil)
	o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone)
	o.AdaPhone.Do("hangup", "")
	o.BobPhone.Wait("CALL_CLOSED", "")
	r := o.CDR(o.Ada.Extension)
	var page struct {
		Data []struct {
			ID, Status string
			Channels   int
		}
	}
	rig.Until(t, "both recordings", 20*time.Second, func() bool {
		o.Want(200, "GET", "/recordings?status=available&call_id="+r.CallID, nil, &page)
		return len(page.Data) == 2
	})
	if page.Data[0].Channels != 1 || page.Data[1].Channels != 2 {
		t.Errorf("recordings %+v, the newest should have one channel", page.Data)
	}
	pcm := o.RecordingAudio(page.Data[0].ID, "").PCM
	if len(pcm) != 1 {
		t.Fatalf("the file has %d channels", len(pcm))
	}
	for _, hz := range []float64{fixture.AdaTone, fixture.BobTone} {
		if d := fixture.ToneDuration(pcm[0], hz); d < time.Second {
			t.Errorf("the one channel has %.0f Hz for %s", hz, d)
		}
	}
}

// TestRecording_PauseExpires pauses a recording for a time. It resumes when the time is over.
func TestRecording_PauseExpires(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	path := o.ConnectCall()
	state := func(c map[string]any) any { return c["recording"].(map[string]any)["state"] }
	paused := time.Now()
	o.Want(200, "POST", path+"/recording/pause", map[string]any{"reason": "payment", "auto_resume_seconds": 5}, nil)
	o.LiveCall(func(c map[string]any) bool { return state(c) == "paused" })
	o.LiveCall(func(c map[string]any) bool { return state(c) == "recording" })
	if d := time.Since(paused); d < 5*time.Second || d > 8*time.Second {
		t.Errorf("recorded again after %s", d)
	}
	o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone)
	o.AdaPhone.Do("hangup", "")
	o.BobPhone.Wait("CALL_CLOSED", "")
	r := o.CDR(o.Ada.Extension)
	left := o.RecordingAudio(o.Recording(r.CallID).ID, "").PCM[0]
	fixture.Hears(t, "the end of the left channel", left[max(len(left)-8000, 0):], fixture.AdaTone, 600*time.Millisecond)
	fixture.HearsNot(t, "the left channel, less the pause,", left, fixture.AdaTone, fixture.SampleDuration(len(left))-4*time.Second)
}
