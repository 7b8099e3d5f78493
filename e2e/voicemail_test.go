package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

func TestATelephoneIsToldOfItsMailbox(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	ada := newSite(s).AddUser("Ada")
	phone := s.Phone(ada.SIP, rig.PhoneOptions{Lamp: true})
	phone.Wait("MWI_NOTIFY", "Voice-Message: 0/0")
}

// messageTone is what callers leave in place of words, and beepHz is what they hear before it.
const (
	messageTone = 620
	beepHz      = 1000
)

// A mailroom is an office where callers from outside come to Ada's mailbox.
type mailroom struct {
	*site
	ada      rig.User
	adaPhone *rig.Phone
	number   string
	line     carrier
}

func newMailroom(s *rig.Server) *mailroom {
	s.T.Helper()
	m := &mailroom{site: newSite(s)}
	m.ada = m.AddUser("Ada")
	c := m.carrier("", map[string]any{"inbound": map[string]any{"allowed_ips": []string{"127.0.0.1"}}})
	m.number, m.line = c.number, c
	m.leadTo(m.ada.ID)
	silence, _ := spoken(s.T, "silence", make([]int16, 8000*60))
	m.adaPhone = s.Phone(m.ada.SIP, rig.PhoneOptions{Lamp: true, Say: silence})
	m.adaPhone.Wait("MWI_NOTIFY", "Messages-Waiting: no")
	return m
}

// stranger is a caller from outside who says something from the moment they are connected.
func (m *mailroom) stranger(number, say string) *rig.Phone {
	m.T.Helper()
	return m.Server.Phone(rig.Login{Username: number, Domain: "carrier.example"}, rig.PhoneOptions{Say: say, Unregister: true})
}

// A message is one as the API gives it.
type message struct {
	ID         string
	CallID     string `json:"call_id"`
	Status     string
	From       string `json:"from_number"`
	Seconds    int    `json:"duration_seconds"`
	Transcript *struct {
		ID     *string
		Status string
		Text   *string
	}
	Summary *string `json:"ai_summary"`
	Urgency *string
}

// messages waits until there are n.
func (m *mailroom) messages(n int) []message {
	m.T.Helper()
	var page struct{ Data []message }
	rig.Until(m.T, "messages", 30*time.Second, func() bool {
		m.Want(200, "GET", "/voicemail", nil, &page)
		return len(page.Data) == n
	})
	return page.Data
}

// leave has a stranger call, and hang up some time after the beep.
func (m *mailroom) leave(number string, hz float64, d time.Duration) {
	m.T.Helper()
	say, _ := tone(m.T, hz)
	p := m.stranger(number, say)
	p.Dial(m.number)
	m.beeped(p, 20*time.Second)
	<-time.After(d) // they speak
	p.Do("hangup", "")
}

// beeped waits until a telephone has heard the tone before a message.
func (m *mailroom) beeped(p *rig.Phone, limit time.Duration) {
	m.T.Helper()
	rig.Until(m.T, "the beep", limit, func() bool {
		return p.Mark() > 0 && presence(p.Since(0, seconds(p.Mark())), beepHz) >= 300*time.Millisecond
	})
}

func TestACallerLeavesAMessageThatIsHeardByTelephone(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}}, func(t *testing.T, s *rig.Server) {
		m := newMailroom(s)
		m.leave("+442079460001", messageTone, 4*time.Second)
		got := m.messages(1)[0]
		if got.Status != "new" || got.From != "+442079460001" || got.Seconds < 3 || got.Seconds > 6 {
			t.Errorf("message: %+v", got)
		}
		file := m.Do("GET", "/voicemail/"+got.ID+"/audio", nil)
		path := temporary(t, "message.wav")
		if err := os.WriteFile(path, []byte(file.Body), 0o600); err != nil {
			t.Fatal(err)
		}
		w := read(t, path)
		hears(t, "the message", narrow(w), messageTone, 3*time.Second)
		hearsNot(t, "the message", narrow(w), beepHz, 200*time.Millisecond)
		m.hooks.Wait("voicemail.received", time.Minute, func(e rig.Event) bool { return e.Data["voicemail_id"] == got.ID })
		r := m.record("+442079460001")
		if r.MissedReason == nil || *r.MissedReason != "voicemail" || r.VoicemailID == nil || *r.VoicemailID != got.ID || r.Status != "missed" {
			t.Errorf("record: %s %v %v", r, r.MissedReason, r.VoicemailID)
		}
		m.hooks.Wait("call.missed", time.Minute, func(e rig.Event) bool { return e.Data["voicemail_id"] == got.ID })
		m.adaPhone.Wait("MWI_NOTIFY", "Voice-Message: 1/0")
		m.adaPhone.Dial("*97")
		m.adaPhone.Do("sndcode", "1")
		rig.Until(t, "the message", 30*time.Second, func() bool {
			return presence(m.adaPhone.Since(0, seconds(m.adaPhone.Mark())), messageTone) >= 3*time.Second
		})
		m.adaPhone.Wait("MWI_NOTIFY", "Voice-Message: 0/1")
		m.adaPhone.Do("sndcode", "3")
		m.adaPhone.Wait("MWI_NOTIFY", "Voice-Message: 0/0")
		m.messages(0)
		if a := m.Do("GET", "/voicemail/"+got.ID+"/audio", nil); a.Status != 410 {
			t.Errorf("a deleted message is still given: %d", a.Status)
		}
	})
}

func TestASilentCallerLeavesNothing(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}})
	m := newMailroom(s)
	silence, _ := spoken(t, "silence", make([]int16, 8000*60))
	p := m.stranger("+442079460002", silence)
	p.Dial(m.number)
	p.Wait("CALL_CLOSED", "")
	r := m.record("+442079460002")
	if r.MissedReason == nil || *r.MissedReason == "voicemail" || r.VoicemailID != nil {
		t.Errorf("record: %s %v %v", r, r.MissedReason, r.VoicemailID)
	}
	m.messages(0)
	if left, _ := filepath.Glob(filepath.Join(s.Data, "recordings", "*", "*", "*", "vm_*")); len(left) > 0 {
		t.Errorf("files: %v", left)
	}
}

// What a caller says is read, noted and judged as what is said in calls is.
func TestAMessageIsReadAsWords(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{})
	m := newMailroom(s)
	const said = "hello this is robert from the harbour company. our invoice is wrong and it is urgent. please call me back today. thank you and goodbye"
	pcm := append(make([]int16, 8000*8), say(t, "rms", said)...) // the greeting comes first
	wav, _ := spoken(t, "words", append(pcm, make([]int16, 8000*60)...))
	p := m.stranger("+442079460003", wav)
	p.Dial(m.number)
	p.Wait("CALL_CLOSED", "")     // silence ended it
	spokenFor := time.Duration(0) // the greeting, in words
	for heard := p.Since(0, seconds(p.Mark())); len(heard) >= 160; heard = heard[160:] {
		if loudness(heard[:160]) > -40 && level(heard[:160], beepHz) < -25 {
			spokenFor += 20 * time.Millisecond
		}
	}
	if spokenFor < 1500*time.Millisecond {
		t.Errorf("the caller heard words for %s", spokenFor)
	}
	var got message
	rig.Until(t, "the words", 90*time.Second, func() bool {
		got = m.messages(1)[0]
		return got.Transcript != nil && got.Transcript.Status == "completed"
	})
	if wrong, of := wordErrors(said, *got.Transcript.Text); wrong*2 > of {
		t.Errorf("%d of %d words wrong: %q", wrong, of, *got.Transcript.Text)
	}
	if got.Summary == nil || *got.Summary == "" || got.Urgency == nil {
		t.Errorf("note: %v %v", got.Summary, got.Urgency)
	}
	var tr struct {
		VoicemailID *string `json:"voicemail_id"`
		CallID      string  `json:"call_id"`
	}
	m.Want(200, "GET", "/transcripts/"+*got.Transcript.ID, nil, &tr)
	if tr.VoicemailID == nil || *tr.VoicemailID != got.ID || tr.CallID != got.CallID {
		t.Errorf("transcript: %+v", tr)
	}
	m.hooks.Wait("call.transcription", time.Minute, func(e rig.Event) bool { return e.Data["call_id"] == got.CallID })
	m.Want(204, "DELETE", "/voicemail/"+got.ID, nil, nil)
	m.Want(404, "GET", "/transcripts/"+*got.Transcript.ID, nil, nil)
}

// press dials keys one after the other.
func press(p *rig.Phone, keys string) {
	for _, k := range keys {
		p.Do("sndcode", string(k))
	}
}

func TestAMailboxIsOpenedByPINFromAnyTelephoneAndLocked(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}})
	m := newMailroom(s)
	m.leave("+442079460004", messageTone, 3*time.Second)
	id := m.messages(1)[0].ID
	m.Want(200, "PATCH", "/users/"+m.ada.ID, map[string]any{"voicemail": map[string]any{"enabled": true, "pin": "2580"}}, nil)
	bob := m.AddUser("Bob")
	silence, _ := spoken(t, "silence", make([]int16, 8000*60))
	phone := s.Phone(bob.SIP, rig.PhoneOptions{Say: silence})
	phone.Dial("*98")
	press(phone, m.ada.Extension+"#"+"2580#"+"1")
	rig.Until(t, "the message", 40*time.Second, func() bool {
		return presence(phone.Since(0, seconds(phone.Mark())), messageTone) >= 2*time.Second
	})
	rig.Until(t, "read", 20*time.Second, func() bool { return m.messages(1)[0].Status == "read" })
	phone.Do("hangup", "")
	phone.Wait("CALL_CLOSED", "")
	phone.Dial("*98")
	press(phone, m.ada.Extension+"#"+"1111#"+m.ada.Extension+"#"+"2222#"+m.ada.Extension+"#"+"3333#")
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
	press(phone, m.ada.Extension+"#"+"2580#")
	phone.Wait("CALL_CLOSED", "") // the right one opens nothing while it is locked
	if got := m.messages(1)[0]; got.ID != id {
		t.Errorf("%+v", got)
	}
	for _, r := range m.records(4, "") {
		var steps struct{ Data []map[string]any }
		m.Want(200, "GET", "/calls/"+r.CallID+"/events?limit=200", nil, &steps)
		if told := fmt.Sprint(steps.Data); r.To == "*98" && (strings.Contains(told, "dtmf") || !strings.Contains(told, "mailbox.")) {
			t.Errorf("keys were told of, or the story is not there: %s", told)
		}
	}
}

func TestAGreetingRecordedByTelephoneIsHeardByTheNextCaller(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}})
	m := newMailroom(s)
	const greeting = 830
	say, _ := tone(t, greeting)
	ada := s.Phone(m.AddUser("Ida").SIP, rig.PhoneOptions{Say: say})
	var users struct{ Data []struct{ ID, Name string } }
	m.Want(200, "GET", "/users", nil, &users)
	ida := users.Data[len(users.Data)-1].ID
	ada.Dial("*97")
	press(ada, "5")
	m.longBeep(ada, 20*time.Second)
	<-time.After(3 * time.Second) // she speaks
	press(ada, "#")
	<-time.After(5 * time.Second) // it is played to her
	press(ada, "1")
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
	m.leadTo(ida)
	silence, _ := spoken(t, "silence", make([]int16, 8000*60))
	p := m.stranger("+442079460005", silence)
	p.Dial(m.number)
	rig.Until(t, "the greeting", 30*time.Second, func() bool {
		return presence(p.Since(0, seconds(p.Mark())), greeting) >= 2*time.Second
	})
}

// longBeep waits for the long tone before a recording: shorter ones stand for words.
func (m *mailroom) longBeep(p *rig.Phone, limit time.Duration) {
	m.T.Helper()
	rig.Until(m.T, "the beep", limit, func() bool {
		return p.Mark() > 0 && presence(p.Since(0, seconds(p.Mark())), beepHz) >= 700*time.Millisecond
	})
}

// What was said until the machine died is a message when it is back.
func TestAMessageCutByACrashIsKept(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}}, func(t *testing.T, s *rig.Server) {
		m := newMailroom(s)
		say, _ := tone(t, messageTone)
		p := m.stranger("+442079460006", say)
		p.Dial(m.number)
		m.beeped(p, 20*time.Second)
		<-time.After(5 * time.Second) // they speak
		s.Kill()
		s.Start()
		got := m.messages(1)[0]
		if got.From != "+442079460006" || got.Seconds < 3 || got.Status != "new" {
			t.Errorf("message: %+v", got)
		}
		path := temporary(t, "message.wav")
		if err := os.WriteFile(path, []byte(m.Do("GET", "/voicemail/"+got.ID+"/audio", nil).Body), 0o600); err != nil {
			t.Fatal(err)
		}
		hears(t, "the message", read(t, path).PCM[0], messageTone, 3*time.Second)
		p.Do("hangup", "") // the caller is asked again: what they may say then is another message
		if r := m.record("+442079460006"); r.VoicemailID == nil {
			t.Errorf("record: %s without a message", r)
		}
	})
}
