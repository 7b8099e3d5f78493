package voicemail

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// A key in the voicemail menu calls back the caller who left the message, by the user's dialling rules.
func TestCallback_FromMailbox(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}})
	m := newVoicemailOffice(s)
	m.leaveMessage("+12125550199", fixture.MessageTone, 3*time.Second)
	m.leaveMessage("+442079460009", fixture.MessageTone, 3*time.Second) // the newest message; calls to its country are not allowed
	m.WaitMessages(2)
	answer := s.Sipp(rig.Script{Scenario: "answer_bye", IP: m.carrier.IP, Port: m.carrier.Port, Limit: 2 * time.Minute})
	m.adaPhone.Dial("*97")
	pressKeys(m.adaPhone, "1")
	m.adaPhone.Wait("MWI_NOTIFY", "Voice-Message: 1/1")
	pressKeys(m.adaPhone, "42")
	m.adaPhone.Wait("MWI_NOTIFY", "Voice-Message: 0/2")
	pressKeys(m.adaPhone, "4")
	answer.Wait()
	if got := answer.Received("INVITE", 0); !strings.Contains(got, "12125550199") {
		t.Errorf("called:\n%s", got)
	}
	m.adaPhone.Wait("CALL_CLOSED", "")
	r := m.CDRs(1, "direction=internal")[0]
	var steps struct{ Data []map[string]any }
	m.Want(200, "GET", "/calls/"+r.CallID+"/events?limit=200", nil, &steps)
	if told := fmt.Sprint(steps.Data); !strings.Contains(told, "mailbox.not_called_back") {
		t.Errorf("the refused one is not told: %s", told)
	}
}
