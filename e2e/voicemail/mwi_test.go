package voicemail

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestMWI_Subscribed(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	ada := fixture.NewOrg(s).AddUser("Ada")
	phone := s.Phone(ada.SIP, rig.PhoneOptions{Lamp: true})
	phone.Wait("MWI_NOTIFY", "Voice-Message: 0/0")
}

// TestMWI_EveryNameOfMailbox proves that phones subscribe to their mailbox by *97, by the extension and by their user name. The extension
// begins with 0. Each phone is notified of a message and of its deletion in the menu.
//
// https://github.com/fusionpbx/fusionpbx/pull/2882
// https://github.com/fusionpbx/fusionpbx/issues/2039
// https://github.com/irontec/ivozprovider/issues/536
func TestMWI_EveryNameOfMailbox(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}})
	m := newVoicemailOffice(s)
	const extension = "0716"
	m.UpdateUser(m.ada, map[string]any{"extension": extension, "voicemail": map[string]any{"enabled": true}})
	m.Want(200, "PUT", "/users/"+m.ada.ID+"/dnd", map[string]any{"enabled": true}, nil)
	lamps := map[string]*rig.Sipp{}
	for _, name := range []string{"*97", extension, m.ada.SIP.Username} {
		lamps[name] = s.Sipp(rig.Script{Scenario: "watch", Login: &m.ada.SIP, Number: name, Event: "message-summary", Limit: 2 * time.Minute})
	}
	show := func(counts string) {
		t.Helper()
		for name, lamp := range lamps {
			rig.Until(t, "the lamp of "+name+" shows "+counts, 30*time.Second, func() bool { return lastCounts(lamp) == counts })
		}
	}
	show("0/0 (0/0)")
	say, _ := fixture.Tone(t, fixture.MessageTone)
	caller := s.Phone(m.AddUser("Bob").SIP, rig.PhoneOptions{Say: say})
	caller.Dial(extension)
	m.WaitBeep(caller, 20*time.Second)
	<-time.After(3 * time.Second) // he speaks
	caller.Do("hangup", "")
	show("1/0 (0/0)")
	m.adaPhone.Dial("*97")
	m.adaPhone.Do("sndcode", "1")
	show("0/1 (0/0)")
	m.adaPhone.Do("sndcode", "3")
	show("0/0 (0/0)")
	m.WaitMessages(0)
}

// lastCounts returns the message counts of the last NOTIFY (RFC 3842 §5.2) that a watcher received.
func lastCounts(lamp *rig.Sipp) (counts string) {
	for _, m := range lamp.Messages() {
		if m.Received && strings.HasPrefix(m.Text, "NOTIFY") {
			counts = cmp.Or(rig.Field(m.Text, "Voice-Message"), counts)
		}
	}
	return counts
}

// A telephone that never subscribes gets unsolicited MWI (RFC 3842).
func TestMWI_Unsolicited(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}})
	m := newVoicemailOffice(s)
	bob := m.AddUser("Bob")
	m.routeTo(bob.ID)
	port := m.RegisterSipp(bob.SIP)
	told := s.Sipp(rig.Script{Scenario: "answer_notify", Port: port, Event: "message-summary", Limit: time.Minute})
	m.leaveMessage("+442079460007", fixture.MessageTone, 3*time.Second)
	told.Wait()
	if got := told.Received("NOTIFY", 0); !strings.Contains(got, "Messages-Waiting: yes") || !strings.Contains(got, "Voice-Message: 1/0 (0/0)") ||
		rig.Field(got, "Subscription-State") != "terminated" || rig.Field(got, "Content-Type") != "application/simple-message-summary" {
		t.Errorf("told:\n%s", got)
	}
}

// A mailbox is emptied while its telephone is off. The telephone receives a NOTIFY with no messages when it registers with another
// Call-ID.
// https://github.com/fusionpbx/fusionpbx/issues/1193
func TestMWI_NoMessagesAfterReturn(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}})
	m := newVoicemailOffice(s)
	bob := m.AddUser("Bob")
	m.routeTo(bob.ID)
	m.leaveMessage("+442079460008", fixture.MessageTone, 3*time.Second)
	port := m.RegisterSipp(bob.SIP)
	told := s.Sipp(rig.Script{Scenario: "answer_notify", Port: port, Event: "message-summary", Limit: time.Minute})
	told.Wait()
	if got := told.Received("NOTIFY", 0); !strings.Contains(got, "Messages-Waiting: yes") {
		t.Errorf("told:\n%s", got)
	}
	m.Want(204, "DELETE", "/voicemail/"+m.WaitMessages(1)[0].ID, nil, nil) // the telephone does not answer any more
	m.WaitMessages(0)
	port = m.RegisterSipp(bob.SIP)
	told = s.Sipp(rig.Script{Scenario: "answer_notify", Port: port, Event: "message-summary", Limit: time.Minute})
	told.Wait()
	if got := told.Received("NOTIFY", 0); !strings.Contains(got, "Messages-Waiting: no") || !strings.Contains(got, "Voice-Message: 0/0 (0/0)") {
		t.Errorf("told:\n%s", got)
	}
}

// A message is assigned to a user and then to another one, while the telephone of the first is off. Both telephones show it.
// https://github.com/fusionpbx/fusionpbx/issues/1193
func TestMWI_AssignedForATime(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}})
	m := newVoicemailOffice(s)
	cora, dan := m.AddUser("Cora"), m.AddUser("Dan")
	m.leaveMessage("+442079460009", fixture.MessageTone, 3*time.Second)
	message := "/voicemail/" + m.WaitMessages(1)[0].ID
	told := func(u rig.User, change func()) string {
		port := m.RegisterSipp(u.SIP)
		phone := s.Sipp(rig.Script{Scenario: "answer_notify", Port: port, Event: "message-summary", Limit: time.Minute})
		change()
		phone.Wait()
		return phone.Received("NOTIFY", 0)
	}
	assign := func(u rig.User) {
		m.Want(200, "PATCH", message, map[string]any{"assignee_id": u.ID}, nil)
	}
	if got := told(cora, func() { assign(cora) }); !strings.Contains(got, "Voice-Message: 1/0 (0/0)") {
		t.Errorf("Cora's telephone was told:\n%s", got)
	}
	if got := told(dan, func() { assign(dan) }); !strings.Contains(got, "Voice-Message: 1/0 (0/0)") {
		t.Errorf("Dan's telephone was told:\n%s", got)
	}
	if got := told(cora, func() {}); !strings.Contains(got, "Messages-Waiting: no") || !strings.Contains(got, "Voice-Message: 0/0 (0/0)") {
		t.Errorf("Cora's telephone was told after its return:\n%s", got)
	}
}
