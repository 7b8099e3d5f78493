package voicemail

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

func TestMessage_LeftAndHeardByPhone(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}}, func(t *testing.T, s *rig.Server) {
		m := newVoicemailOffice(s)
		m.leaveMessage("+442079460001", fixture.MessageTone, 4*time.Second)
		got := m.WaitMessages(1)[0]
		if got.Status != "new" || got.From != "+442079460001" || got.Seconds < 3 || got.Seconds > 6 {
			t.Errorf("message: %+v", got)
		}
		file := m.Do("GET", "/voicemail/"+got.ID+"/audio", nil)
		path := fixture.TempFile(t, "message.wav")
		if err := os.WriteFile(path, []byte(file.Body), 0o600); err != nil {
			t.Fatal(err)
		}
		w := fixture.ReadWAV(t, path)
		fixture.Hears(t, "the message", fixture.Narrowband(w), fixture.MessageTone, 3*time.Second)
		fixture.HearsNot(t, "the message", fixture.Narrowband(w), fixture.BeepTone, 200*time.Millisecond)
		m.Webhook.Wait("voicemail.received", time.Minute, func(e rig.Event) bool { return e.Data["voicemail_id"] == got.ID })
		r := m.CDR("+442079460001")
		if r.MissedReason == nil || *r.MissedReason != "voicemail" || r.VoicemailID == nil || *r.VoicemailID != got.ID || r.Status != "missed" {
			t.Errorf("record: %s %v %v", r, r.MissedReason, r.VoicemailID)
		}
		m.Webhook.Wait("call.missed", time.Minute, func(e rig.Event) bool { return e.Data["voicemail_id"] == got.ID })
		m.adaPhone.Wait("MWI_NOTIFY", "Voice-Message: 1/0")
		m.adaPhone.Dial("*97")
		m.adaPhone.Do("sndcode", "1")
		rig.Until(t, "the message", 30*time.Second, func() bool {
			return fixture.ToneDuration(m.adaPhone.Since(0, fixture.SampleDuration(m.adaPhone.Mark())),
				fixture.MessageTone) >= 3*time.Second
		})
		m.adaPhone.Wait("MWI_NOTIFY", "Voice-Message: 0/1")
		m.adaPhone.Do("sndcode", "3")
		m.adaPhone.Wait("MWI_NOTIFY", "Voice-Message: 0/0")
		m.WaitMessages(0)
		if a := m.Do("GET", "/voicemail/"+got.ID+"/audio", nil); a.Status != 410 {
			t.Errorf("a deleted message is still given: %d", a.Status)
		}
	})
}

// TestMessage_SilenceDiscarded proves that no message is stored if the caller hangs up in the greeting, or is silent after it.
//
// https://github.com/shimaore/ccnq3/issues/41
func TestMessage_SilenceDiscarded(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}})
	m := newVoicemailOffice(s)
	silence, _ := fixture.WriteAudio(t, "silence", make([]int16, 8000*60))
	p := m.callFromOutside("+442079460002", silence)
	p.Dial(m.number) // the greeting is a short beep
	const greeting = 830
	m.Want(200, "PATCH", "/users/"+m.ada.ID, map[string]any{"voicemail": map[string]any{
		"greeting_audio_id": m.UploadTone(greeting, 20*time.Second)}}, nil)
	v := m.CallIn(m.carrier, "+442079460012")
	v.WaitTone(0, greeting)
	v.Line.HangUp()
	p.Wait("CALL_CLOSED", "")
	for _, number := range []string{"+442079460002", "+442079460012"} {
		r := m.CDR(number)
		if r.MissedReason == nil || *r.MissedReason == "voicemail" || r.VoicemailID != nil {
			t.Errorf("record: %s %v %v", r, r.MissedReason, r.VoicemailID)
		}
	}
	m.WaitMessages(0)
	if left, _ := filepath.Glob(filepath.Join(s.Data, "recordings", "*", "*", "*", "vm_*")); len(left) > 0 {
		t.Errorf("files: %v", left)
	}
}

// A voicemail message is transcribed, summarised and rated as calls are.
func TestMessage_Transcribed(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 60*time.Second, "a whole message is spoken")
	s := rig.Shared(t, rig.Options{})
	m := newVoicemailOffice(s)
	const said = "hello this is robert from the harbour company. our invoice is wrong and it is urgent. please call me back today. thank you and goodbye"
	heard := m.leaveWords("+442079460003", fixture.Synthesize(t, "rms", said))
	spokenFor := time.Duration(0) // the greeting, in words
	for ; len(heard) >= 160; heard = heard[160:] {
		if fixture.Loudness(heard[:160]) > -40 && fixture.ToneLevel(heard[:160], fixture.BeepTone) < -25 {
			spokenFor += 20 * time.Millisecond
		}
	}
	if spokenFor < 1500*time.Millisecond {
		t.Errorf("the caller heard words for %s", spokenFor)
	}
	var got fixture.VoicemailMessage
	rig.Until(t, "the words", 90*time.Second, func() bool {
		got = m.WaitMessages(1)[0]
		return got.Transcript != nil && got.Transcript.Status == "completed"
	})
	if wrong, of := fixture.WordErrors(said, *got.Transcript.Text); wrong*2 > of {
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
	m.Webhook.Wait("call.transcription", time.Minute, func(e rig.Event) bool { return e.Data["call_id"] == got.CallID })
	m.Want(204, "DELETE", "/voicemail/"+got.ID, nil, nil)
	m.Want(404, "GET", "/transcripts/"+*got.Transcript.ID, nil, nil)
}

// The part of a message recorded before a kill is a message after the restart.
func TestMessage_KeptAfterKill(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}}, func(t *testing.T, s *rig.Server) {
		m := newVoicemailOffice(s)
		say, _ := fixture.Tone(t, fixture.MessageTone)
		p := m.callFromOutside("+442079460006", say)
		p.Dial(m.number)
		m.WaitBeep(p, 20*time.Second)
		<-time.After(5 * time.Second) // they speak
		s.Kill()
		s.Start()
		got := m.WaitMessages(1)[0]
		if got.From != "+442079460006" || got.Seconds < 3 || got.Status != "new" {
			t.Errorf("message: %+v", got)
		}
		path := fixture.TempFile(t, "message.wav")
		if err := os.WriteFile(path, []byte(m.Do("GET", "/voicemail/"+got.ID+"/audio", nil).Body), 0o600); err != nil {
			t.Fatal(err)
		}
		fixture.Hears(t, "the message", fixture.ReadWAV(t, path).PCM[0], fixture.MessageTone, 3*time.Second)
		p.Do("hangup", "") // the caller is asked again: further speech would be another message
		if r := m.CDR("+442079460006"); r.VoicemailID == nil {
			t.Errorf("record: %s without a message", r)
		}
	})
}
