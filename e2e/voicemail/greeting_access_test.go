package voicemail

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// https://github.com/fusionpbx/fusionpbx/issues/2073
func TestPIN_StarInGreeting(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 75*time.Second, "five callers hear greetings and prompts")
	s := rig.Start(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off"}})
	m := newVoicemailOffice(s)
	m.leaveMessage("+442079460004", fixture.MessageTone, 3*time.Second)
	m.WaitMessages(1)
	silence, _ := fixture.WriteAudio(t, "silence", make([]int16, 8000*60))
	star := func(number, keys string) *rig.Phone {
		t.Helper()
		p := m.callFromOutside(number, silence)
		p.Dial(m.number)
		pressKeys(p, keys)
		return p
	}
	without := star("+442079460005", "*") // there is no PIN: as any key, it skips the greeting
	m.WaitBeep(without, 20*time.Second)
	without.Do("hangup", "")
	m.Want(200, "PATCH", "/users/"+m.ada.ID, map[string]any{"voicemail": map[string]any{"enabled": true, "pin": "2580"}}, nil)

	ada := star("+442079460006", "*2580#1")
	rig.Until(t, "the message", 40*time.Second, func() bool {
		return fixture.ToneDuration(ada.Since(0, fixture.SampleDuration(ada.Mark())), fixture.MessageTone) >= 2*time.Second
	})
	rig.Until(t, "read", 20*time.Second, func() bool { return m.WaitMessages(1)[0].Status == "read" })
	pressKeys(ada, "4*#") // 4 would call back
	ada.Wait("CALL_CLOSED", "")
	r := m.CDRs(1, "phone=%2B442079460006")[0]
	if r.String() != "inbound canceled callee_hangup system 0" {
		t.Errorf("record of the user who listened: %s", r)
	}
	var steps struct{ Data []map[string]any }
	m.Want(200, "GET", "/calls/"+r.CallID+"/events?limit=200", nil, &steps)
	if told := fmt.Sprint(steps.Data); strings.Contains(told, "dtmf") || !strings.Contains(told, "mailbox.entered") ||
		strings.Contains(told, "called_back") {
		t.Errorf("steps %s", told)
	}

	nothing := star("+442079460007", "*") // nothing after the star: a message is taken
	m.WaitBeep(nothing, 40*time.Second)
	nothing.Do("hangup", "")
	stranger := star("+442079460008", "*1111#2222#3333#")
	stranger.Wait("CALL_CLOSED", "")
	var log struct {
		Data []struct{ Operation, Outcome string }
	}
	m.Want(200, "GET", "/audit-log?operation=voicemail.pin", nil, &log)
	if len(log.Data) != 1 || log.Data[0].Outcome != "denied" {
		t.Errorf("audit log: %+v", log.Data)
	}
}
