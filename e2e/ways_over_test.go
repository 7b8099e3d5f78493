package e2e

import (
	"testing"
	"time"

	"soniq/e2e/rig"
)

func TestACallEndsWhenItHasLastedAsLongAsItMay(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	o.Want(201, "POST", "/calls", map[string]any{"to": "ext:" + o.bob.Extension, "user_id": o.ada.ID, "max_duration_seconds": 3}, nil)
	o.bobPhone.Wait("CALL_ESTABLISHED", "")
	o.talks("Ada, before,", o.adaPhone, bobTone)
	o.adaPhone.Wait("CALL_CLOSED", "")
	o.bobPhone.Wait("CALL_CLOSED", "")
	r := o.records(1, "")[0]
	if r.String() != "internal completed max_duration system 0" || r.Talk < 2 || r.Talk > 4 {
		t.Errorf("record: %s, talked for %d s", r, r.Talk)
	}
}

// transfersInVain connects Ada and Bob, and has Ada handed over to Dave, who does not answer. It returns the call.
func (o *office) transfersInVain(dave rig.User, onFail string) (id string) {
	o.T.Helper()
	silent := o.phone(dave, 700, rig.PhoneOptions{})
	path := o.call()
	o.Want(200, "POST", path+"/transfer", map[string]any{"to": "ext:" + dave.Extension, "timeout_seconds": 5, "on_fail": onFail}, nil)
	silent.Wait("CALL_INCOMING", "")
	o.bobPhone.Wait("CALL_CLOSED", "")
	silent.Wait("CALL_CLOSED", "")
	return path[len("/calls/"):]
}

func TestATransferInVainEndsTheCallWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	id := o.transfersInVain(o.AddUser("Dave"), "hangup")
	o.adaPhone.Wait("CALL_CLOSED", "")
	r := o.record(o.ada.Extension)
	if r.CallID != id || r.String() != "internal completed transfer system 0" {
		t.Errorf("record: %+v", r)
	}
	if told := o.told(id, "transfer.failed"); told["mode"] != "blind" {
		t.Errorf("the timeline tells of the transfer: %v", told)
	}
}

// A caller whom nobody takes over may leave a message for who was rung.
func TestATransferInVainLeadsToTheMailboxWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	dave := o.AddUser("Dave")
	id := o.transfersInVain(dave, "voicemail")
	mark := o.adaPhone.Mark()
	o.live(func(c map[string]any) bool { return c["stage"] == "voicemail" })
	rig.Until(t, "the beep", 30*time.Second, func() bool {
		return o.adaPhone.Mark() > mark && presence(o.adaPhone.Since(mark, seconds(o.adaPhone.Mark()-mark)), beepHz) >= 300*time.Millisecond
	})
	lasts(t, 3*time.Second) // her message
	o.adaPhone.Do("hangup", "")
	var page struct {
		Data []struct {
			message
			Box struct{ ID string } `json:"mailbox"`
		}
	}
	rig.Until(t, "the message", 30*time.Second, func() bool {
		o.Want(200, "GET", "/voicemail", nil, &page)
		return len(page.Data) == 1
	})
	m := page.Data[0]
	if m.CallID != id || m.Box.ID != dave.ID || m.From != o.ada.Extension || m.Seconds < 2 || m.Seconds > 6 {
		t.Errorf("message: %+v", m)
	}
}

// A recording that was paused for a time goes on by itself.
func TestAPauseOfARecordingEndsByItself(t *testing.T) {
	t.Parallel()
	o := newOffice(rig.Start(t, rig.Options{Env: quiet}))
	path := o.call()
	state := func(c map[string]any) any { return c["recording"].(map[string]any)["state"] }
	paused := time.Now()
	o.Want(200, "POST", path+"/recording/pause", map[string]any{"reason": "payment", "auto_resume_seconds": 5}, nil)
	o.live(func(c map[string]any) bool { return state(c) == "paused" })
	o.live(func(c map[string]any) bool { return state(c) == "recording" })
	if d := time.Since(paused); d < 5*time.Second || d > 8*time.Second {
		t.Errorf("recorded again after %s", d)
	}
	o.talks("Ada", o.adaPhone, bobTone)
	o.adaPhone.Do("hangup", "")
	o.bobPhone.Wait("CALL_CLOSED", "")
	r := o.record(o.ada.Extension)
	left := o.audio(o.recording(r.CallID).ID, "").PCM[0]
	hears(t, "the end of the left channel", left[max(len(left)-8000, 0):], adaTone, 600*time.Millisecond)
	hearsNot(t, "the left channel, less the pause,", left, adaTone, seconds(len(left))-4*time.Second)
}
