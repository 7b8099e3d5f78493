package transfer

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestBlindTransfer_ByRequest(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	path := o.ConnectCall()
	o.Want(200, "POST", path+"/transfer", map[string]any{"to": "ext:" + o.Carol.Extension}, nil)
	o.BobPhone.Wait("CALL_CLOSED", "")
	o.CarolPhone.Wait("CALL_ESTABLISHED", "")
	o.HearsOnly("Ada", o.AdaPhone, fixture.CarolTone)
	o.HearsOnly("Carol", o.CarolPhone, fixture.AdaTone)
	c := o.LiveCall(func(c map[string]any) bool { return c["agent_id"] == o.Carol.ID })
	if transfer := c["transfer"].(map[string]any); transfer["status"] != "completed" || c["status"] != "in_progress" {
		t.Errorf("transferred call: %v", c)
	}
	o.AdaPhone.Do("hangup", "")
	o.CarolPhone.Wait("CALL_CLOSED", "")
	r := o.CDR(o.Ada.Extension)
	if r.String() != "internal completed caller_hangup caller 0" || r.Agent == nil || r.Agent.ID != o.Carol.ID {
		t.Errorf("record: %+v", r)
	}
	both := o.RecordingAudio(o.Recording(r.CallID).ID, "").PCM
	fixture.Hears(t, "the right channel before the transfer", both[1], fixture.BobTone, time.Second)
	fixture.Hears(t, "the right channel after the transfer", both[1], fixture.CarolTone, time.Second)
}

func TestBlindTransfer_FailureReturnsCall(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	dave := o.AddUser("Dave")
	path := o.ConnectCall()
	o.Want(422, "POST", path+"/transfer", map[string]any{"to": "ext:" + dave.Extension}, nil) // no phone
	o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone)
	silent := o.Phone(dave, 700, rig.PhoneOptions{})
	o.Want(200, "POST", path+"/transfer", map[string]any{"to": "ext:" + dave.Extension, "timeout_seconds": 5}, nil)
	silent.Wait("CALL_INCOMING", "")
	c := o.LiveCall(func(c map[string]any) bool {
		transfer, _ := c["transfer"].(map[string]any)
		return transfer["status"] == "failed"
	})
	if c["status"] != "in_progress" {
		t.Errorf("call after the transfer: %v", c)
	}
	o.HearsOnly("Ada", o.AdaPhone, fixture.BobTone)
	o.HearsOnly("Bob", o.BobPhone, fixture.AdaTone)
}

func TestBlindTransfer_FromPhone(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	o.ConnectCall()
	o.BobPhone.Do("transfer", "sip:"+o.Carol.Extension+"@"+o.Server.SIP)
	o.CarolPhone.Wait("CALL_ESTABLISHED", "")
	o.BobPhone.Wait("CALL_CLOSED", "")
	o.HearsOnly("Ada", o.AdaPhone, fixture.CarolTone)
	o.HearsOnly("Carol", o.CarolPhone, fixture.AdaTone)
}

// transferUnanswered connects Ada and Bob, and transfers Ada to Dave, who does not answer. It returns the call.
func transferUnanswered(o *fixture.Office, dave rig.User, onFail string) (id string) {
	o.T.Helper()
	silent := o.Phone(dave, 700, rig.PhoneOptions{})
	path := o.ConnectCall()
	o.Want(200, "POST", path+"/transfer", map[string]any{"to": "ext:" + dave.Extension, "timeout_seconds": 5, "on_fail": onFail}, nil)
	silent.Wait("CALL_INCOMING", "")
	o.BobPhone.Wait("CALL_CLOSED", "")
	silent.Wait("CALL_CLOSED", "")
	return path[len("/calls/"):]
}

func TestBlindTransfer_FailureHangsUp(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	id := transferUnanswered(o, o.AddUser("Dave"), "hangup")
	o.AdaPhone.Wait("CALL_CLOSED", "")
	r := o.CDR(o.Ada.Extension)
	if r.CallID != id || r.String() != "internal completed transfer system 0" {
		t.Errorf("record: %+v", r)
	}
	if told := o.WaitTimelineStep(id, "transfer.failed"); told["mode"] != "blind" {
		t.Errorf("the timeline tells of the transfer: %v", told)
	}
}

// After a failed transfer the caller can leave a message for the user whose phone rang.
func TestBlindTransfer_FailureToVoicemail(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	dave := o.AddUser("Dave")
	id := transferUnanswered(o, dave, "voicemail")
	mark := o.AdaPhone.Mark()
	o.LiveCall(func(c map[string]any) bool { return c["stage"] == "voicemail" })
	rig.Until(t, "the beep", 30*time.Second, func() bool {
		return o.AdaPhone.Mark() > mark && fixture.ToneDuration(o.AdaPhone.Since(mark, fixture.SampleDuration(o.AdaPhone.Mark()-mark)),
			fixture.BeepTone) >= 300*time.Millisecond
	})
	fixture.LetCallRun(t, 3*time.Second) // her message
	o.AdaPhone.Do("hangup", "")
	var page struct {
		Data []struct {
			fixture.VoicemailMessage
			Box struct{ ID string } `json:"mailbox"`
		}
	}
	rig.Until(t, "the message", 30*time.Second, func() bool {
		o.Want(200, "GET", "/voicemail", nil, &page)
		return len(page.Data) == 1
	})
	m := page.Data[0]
	if m.CallID != id || m.Box.ID != dave.ID || m.From != o.Ada.Extension || m.Seconds < 2 || m.Seconds > 6 {
		t.Errorf("message: %+v", m)
	}
}
