package voicemail

import (
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// voicemailOffice is an organisation in which outside callers reach the mailbox of Ada.
type voicemailOffice struct {
	*fixture.Org
	ada      rig.User
	adaPhone *rig.Phone
	number   string
	carrier  fixture.Carrier
}

// newVoicemailOffice makes an office. The telephone of Ada is silent and subscribes to her mailbox.
func newVoicemailOffice(s *rig.Server) *voicemailOffice {
	s.T.Helper()
	m := &voicemailOffice{Org: fixture.NewOrg(s)}
	m.ada = m.AddUser("Ada")
	c := m.AddCarrier("", map[string]any{"inbound": map[string]any{"allowed_ips": []string{"127.0.0.1"}}})
	m.number, m.carrier = c.Number, c
	m.routeTo(m.ada.ID)
	silence, _ := fixture.WriteAudio(s.T, "silence", make([]int16, 8000*60))
	m.adaPhone = s.Phone(m.ada.SIP, rig.PhoneOptions{Lamp: true, Say: silence})
	m.adaPhone.Wait("MWI_NOTIFY", "Messages-Waiting: no")
	return m
}

// callFromOutside starts an outside caller who speaks as soon as they are connected.
func (m *voicemailOffice) callFromOutside(number, say string) *rig.Phone {
	m.T.Helper()
	return m.Server.Phone(rig.Login{Username: number, Domain: "carrier.example"}, rig.PhoneOptions{Say: say, Unregister: true})
}

// leaveMessage makes an outside caller leave a message of a length.
func (m *voicemailOffice) leaveMessage(number string, hz float64, d time.Duration) {
	m.T.Helper()
	say, _ := fixture.Tone(m.T, hz)
	p := m.callFromOutside(number, say)
	p.Dial(m.number)
	m.WaitBeep(p, 20*time.Second)
	<-time.After(d) // they speak
	p.Do("hangup", "")
}

// leaveWords makes an outside caller speak after the beep and stay silent until the call ends. It returns the audio that the
// caller heard.
func (m *voicemailOffice) leaveWords(number string, words []int16) []int16 {
	m.T.Helper()
	line, err := m.DialIn(m.carrier, number)
	if err != nil {
		m.T.Fatal(err)
	}
	c := &fixture.Caller{T: m.T, Line: line}
	line.Listen(c.Keep)
	for at, quiet := 0, make([]int16, 800); ; {
		if err := line.Say(m.T.Context(), quiet); err != nil {
			m.T.Fatal("the call ended before the beep: ", err)
		}
		if at = c.Mark(); fixture.ToneDuration(c.Since(0, fixture.SampleDuration(at)), fixture.BeepTone) >= 300*time.Millisecond {
			break
		}
	}
	if err := line.Say(m.T.Context(), words); err != nil {
		m.T.Fatal("the call ended during the message: ", err)
	}
	for quiet := make([]int16, 800); line.Say(m.T.Context(), quiet) == nil; { // ended by silence
	}
	return c.Since(0, fixture.SampleDuration(c.Mark()))
}

// pressKeys presses keys one after the other.
func pressKeys(p *rig.Phone, keys string) {
	for _, k := range keys {
		p.Do("sndcode", string(k))
	}
}

// routeTo routes the number to a mailbox.
func (m *voicemailOffice) routeTo(mailbox string) {
	m.T.Helper()
	var numbers struct{ Data []struct{ ID string } }
	m.Want(200, "GET", "/numbers", nil, &numbers)
	m.Want(200, "PATCH", "/numbers/"+numbers.Data[0].ID, map[string]any{"fallback": "voicemail:" + mailbox}, nil)
}
