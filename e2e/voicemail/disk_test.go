package voicemail

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// TestDisk_FullDuringMessage fills the disk while a caller leaves a message. The server ends the recording at once and
// the caller hears that. When the disk has space again, the server stores the recorded part as a message.
//
// https://github.com/fastlabel/open-lutra/pull/73
func TestDisk_FullDuringMessage(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 60*time.Second, "a message, and what the server stores later")
	disk := fixture.SmallDisk(t, 48)
	s := rig.Start(t, rig.Options{Data: filepath.Join(disk, "data"), Upset: true,
		Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}})
	m := newVoicemailOffice(s)
	say, _ := fixture.Tone(t, fixture.MessageTone)
	p := m.callFromOutside("+442079460001", say)
	p.Dial(m.number)
	m.WaitBeep(p, 20*time.Second)
	heard := p.Mark()
	<-time.After(4 * time.Second) // they speak
	free := fixture.FillDisk(t, disk)
	p.Wait("CALL_CLOSED", "") // they would speak on for minutes
	fixture.Hears(t, "the caller", p.Since(heard, fixture.SampleDuration(p.Mark()-heard)), fixture.BeepTone, 300*time.Millisecond)
	if !strings.Contains(s.Log(), "message not taken") {
		t.Error("the message was stored on a full disk: this test proves nothing")
	}
	free()

	got := m.WaitMessages(1)[0]
	if got.From != "+442079460001" || got.Seconds < 2 || got.Seconds > 6 {
		t.Errorf("message: %+v", got)
	}
	file := m.Do("GET", "/voicemail/"+got.ID+"/audio", nil)
	path := fixture.TempFile(t, "message.wav")
	if err := os.WriteFile(path, []byte(file.Body), 0o600); err != nil {
		t.Fatal(err)
	}
	fixture.Hears(t, "the message", fixture.Narrowband(fixture.ReadWAV(t, path)), fixture.MessageTone, 2*time.Second)
	m.adaPhone.Wait("MWI_NOTIFY", "Voice-Message: 1/0")
	if r := m.CDR("+442079460001"); r.VoicemailID == nil || *r.VoicemailID != got.ID {
		t.Errorf("record: %s, voicemail %v", r, r.VoicemailID)
	}
}
