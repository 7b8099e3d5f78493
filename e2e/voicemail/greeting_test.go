package voicemail

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestGreeting_RecordedByPhone(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}})
	m := newVoicemailOffice(s)
	const greeting = 830
	say, _ := fixture.Tone(t, greeting)
	ada := s.Phone(m.AddUser("Ida").SIP, rig.PhoneOptions{Say: say})
	var users struct{ Data []struct{ ID, Name string } }
	m.Want(200, "GET", "/users", nil, &users)
	ida := users.Data[len(users.Data)-1].ID
	ada.Dial("*97")
	pressKeys(ada, "5")
	m.waitLongBeep(ada, 20*time.Second)
	<-time.After(3 * time.Second) // she speaks
	pressKeys(ada, "#")
	<-time.After(5 * time.Second) // the greeting is played back
	pressKeys(ada, "1")
	rig.Until(t, "the greeting", 30*time.Second, func() bool {
		var u struct {
			Voicemail struct {
				Greeting *string `json:"greeting_audio_id"`
			}
		}
		m.Want(200, "GET", "/users/"+ida, nil, &u)
		return u.Voicemail.Greeting != nil
	})
	ada.Do("hangup", "")
	m.routeTo(ida)
	silence, _ := fixture.WriteAudio(t, "silence", make([]int16, 8000*60))
	p := m.callFromOutside("+442079460005", silence)
	p.Dial(m.number)
	rig.Until(t, "the greeting", 30*time.Second, func() bool {
		return fixture.ToneDuration(p.Since(0, fixture.SampleDuration(p.Mark())), greeting) >= 2*time.Second
	})
}

// waitLongBeep waits for the long beep before a recording. Shorter beeps replace words.
func (m *voicemailOffice) waitLongBeep(p *rig.Phone, limit time.Duration) {
	m.T.Helper()
	rig.Until(m.T, "the beep", limit, func() bool {
		return p.Mark() > 0 && fixture.ToneDuration(p.Since(0, fixture.SampleDuration(p.Mark())), fixture.BeepTone) >= 700*time.Millisecond
	})
}
