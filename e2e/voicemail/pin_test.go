package voicemail

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// TestPIN_ChangedByPhone proves that a user can set a PIN by keys, and must enter it the next time.
func TestPIN_ChangedByPhone(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}, Flags: []string{"--media-timeout", "0"}})
	o := fixture.NewOrg(s)
	ada := o.AddHandset("Ada", make(chan *fixture.IncomingCall, 1))
	call := ada.Dial("*97").WaitAnswered()
	call.Press("6" + "1234#1234#" + "2580#2580#" + "#") // consecutive digits are refused
	call.WaitEnd()
	r := o.CDR("*97")
	if r.String() != "internal canceled callee_hangup system 0" {
		t.Errorf("record of who heard their messages: %s", r)
	}
	o.WaitTimelineStep(r.CallID, "mailbox.pin_changed")
	call = ada.Dial("*97").WaitAnswered()
	call.Press("2580#")
	id := o.LiveCall(nil)["id"].(string)
	if e := o.WaitTimelineStep(id, "mailbox.entered"); e["by"] != "PIN" {
		t.Errorf("entered by %v", e)
	}
	call.HangUp()
	if all := o.CDRs(2, "phone=*97"); all[0].String() != "internal canceled caller_hangup caller 0" {
		t.Errorf("record of who hung up: %s", all[0])
	}
}

func TestPIN_AnyPhoneAndLockout(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}})
	m := newVoicemailOffice(s)
	m.leaveMessage("+442079460004", fixture.MessageTone, 3*time.Second)
	id := m.WaitMessages(1)[0].ID
	m.Want(200, "PATCH", "/users/"+m.ada.ID, map[string]any{"voicemail": map[string]any{"enabled": true, "pin": "2580"}}, nil)
	bob := m.AddUser("Bob")
	silence, _ := fixture.WriteAudio(t, "silence", make([]int16, 8000*60))
	phone := s.Phone(bob.SIP, rig.PhoneOptions{Say: silence})
	phone.Dial("*98")
	pressKeys(phone, m.ada.Extension+"#"+"2580#"+"1")
	rig.Until(t, "the message", 40*time.Second, func() bool {
		return fixture.ToneDuration(phone.Since(0, fixture.SampleDuration(phone.Mark())), fixture.MessageTone) >= 2*time.Second
	})
	rig.Until(t, "read", 20*time.Second, func() bool { return m.WaitMessages(1)[0].Status == "read" })
	phone.Do("hangup", "")
	phone.Wait("CALL_CLOSED", "")
	phone.Dial("*98")
	pressKeys(phone, m.ada.Extension+"#"+"1111#"+m.ada.Extension+"#"+"2222#"+m.ada.Extension+"#"+"3333#")
	phone.Wait("CALL_CLOSED", "")
	var log struct {
		Data []struct {
			Operation string
			TargetID  string `json:"target_id"`
			Outcome   string
		}
	}
	m.Want(200, "GET", "/audit-log?operation=voicemail.pin", nil, &log)
	if len(log.Data) != 1 || log.Data[0].TargetID != m.ada.ID || log.Data[0].Outcome != "denied" {
		t.Errorf("audit log: %+v", log.Data)
	}
	phone.Dial("*98")
	pressKeys(phone, m.ada.Extension+"#"+"2580#")
	phone.Wait("CALL_CLOSED", "") // the correct PIN is refused while the mailbox is locked
	if got := m.WaitMessages(1)[0]; got.ID != id {
		t.Errorf("%+v", got)
	}
	for _, r := range m.CDRs(4, "") {
		var steps struct{ Data []map[string]any }
		m.Want(200, "GET", "/calls/"+r.CallID+"/events?limit=200", nil, &steps)
		if told := fmt.Sprint(steps.Data); r.To == "*98" && (strings.Contains(told, "dtmf") || !strings.Contains(told, "mailbox.")) {
			t.Errorf("keys were told of, or the timeline is not there: %s", told)
		}
	}
}
