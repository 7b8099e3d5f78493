package speech

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// A caller reads out the number of a card. It is in no answer of the API, no delivery and no file of the server. The recording becomes
// readable afterwards and is silent there.
//
// https://github.com/CALLE-AI/awesome-phone-call-agents/issues/237
func TestRedaction_RecordedCall(t *testing.T) {
	t.Parallel()
	rig.Each(t, func() rig.Options {
		e := fixture.NewAIServer(t)
		e.Meanings = map[float64]string{fixture.CallerTone: "My card number is 4111 1111 1111 1111, and I want my money back.",
			fixture.BobTone: "I will send it back today."}
		return e.LanguageModelOptions(map[string]string{"SONIQ_SUMMARIZER": "builtin"})
	}(), func(t *testing.T, s *rig.Server) {
		company := fixture.NewOrg(s)
		company.Want(200, "PATCH", "/organization", map[string]any{"redaction": map[string]any{"kinds": []string{"card", "cvv"}}}, nil)
		company.Want(422, "PATCH", "/organization", map[string]any{"redaction": map[string]any{"kinds": []string{"shoe"}}}, nil)
		bob := company.AddUser("Bob")
		phone := company.Phone(bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
		caller := company.CallIn(company.AddCarrier(bob.ID, nil), "+12125550178")
		caller.WaitTone(0, fixture.BobTone)
		phone.Listen(3 * time.Second)
		caller.Line.HangUp()

		id := company.CDR("+12125550178").CallID
		company.Webhook.Wait("call.transcription", 2*time.Minute, func(e rig.Event) bool { return e.Data["call_id"] == id })
		recording := company.Recording(id)
		for _, path := range []string{"/calls/" + id + "/transcript?words=true", "/calls/" + id + "/transcript?format=vtt", "/calls/" + id + "/summary",
			"/calls/" + id + "?expand=transcript,summary", "/events?limit=100", "/recordings/" + recording.ID, "/memory/callers/%2B12125550178"} {
			a := company.Do("GET", path, nil)
			if a.Status != 200 || strings.Contains(string(a.Body), "1111 1111") {
				t.Errorf("%s: %d %s", path, a.Status, a.Body)
			}
		}
		if a := company.Do("GET", "/calls/"+id+"/transcript", nil); !strings.Contains(string(a.Body), "My card number is [card], and I want my money back.") {
			t.Errorf("transcript %s", a.Body)
		}
		sound := company.RecordingAudio(recording.ID, "")
		if d := fixture.ToneDuration(sound.PCM[0], fixture.CallerTone); d > 500*time.Millisecond {
			t.Errorf("%v of the caller's words are left in the recording", d)
		}
		if found := filesWith(t, s.Data, "1111 1111"); len(found) > 0 {
			t.Errorf("the number is in %v", found)
		}
	})
}

// TestRedaction_Voicemail leaves a message with the number of a card, and one without a number. The first is silent afterwards, and its
// text has [card]. The second keeps its sound.
func TestRedaction_Voicemail(t *testing.T) {
	t.Parallel()
	rig.Each(t, func() rig.Options {
		e := fixture.NewAIServer(t)
		e.Meanings = map[float64]string{fixture.CallerTone: "My card number is 4111 1111 1111 1111.", fixture.MessageTone: "Please call me back."}
		return e.LanguageModelOptions(map[string]string{"SONIQ_SUMMARIZER": "builtin"})
	}(), func(t *testing.T, s *rig.Server) {
		company := fixture.NewOrg(s)
		company.Want(200, "PATCH", "/organization", map[string]any{"redaction": map[string]any{"kinds": []string{"card"}, "audio": true}}, nil)
		ada, way := company.AddUser("Ada"), company.AddCarrier("", nil)
		company.Want(200, "PATCH", "/numbers/"+company.NumberID(way), map[string]any{"fallback": "voicemail:" + ada.ID}, nil)
		messages := map[string]struct {
			tone float64
			text string
			left time.Duration // of the tone in the message
		}{
			"+12125550178": {fixture.CallerTone, "My card number is [card].", 0},
			"+12125550179": {fixture.MessageTone, "Please call me back.", 2 * time.Second},
		}
		for from, want := range messages {
			company.LeaveMessage(way, from, threeSeconds(t, want.tone))
		}
		for from, want := range messages {
			m := transcribedMessage(company, from)
			if m.Text == nil || !strings.Contains(*m.Text, want.text) {
				t.Errorf("the text of %s is %v, want %q", from, m.Text, want.text)
			}
			d := fixture.ToneDuration(messageAudio(company, m.id), want.tone)
			if d < want.left || want.left == 0 && d > 500*time.Millisecond {
				t.Errorf("the message of %s has %v of the words, want %v", from, d, want.left)
			}
		}
	})
}

// messageText is the text of a voicemail message.
type messageText struct {
	id, Status string
	Text       *string
}

// transcribedMessage waits until the message of a caller has a text.
func transcribedMessage(company *fixture.Org, from string) (m messageText) {
	company.T.Helper()
	rig.Until(company.T, "the text of the message", 2*time.Minute, func() bool {
		var list struct {
			Data []struct {
				ID         string
				From       string `json:"from_number"`
				Transcript messageText
			}
		}
		company.Want(200, "GET", "/voicemail", nil, &list)
		for _, x := range list.Data {
			if x.From == from {
				m = x.Transcript
				m.id = x.ID
			}
		}
		return m.Status == "completed"
	})
	return m
}

// messageAudio returns the samples of a voicemail message at 8 kHz.
func messageAudio(company *fixture.Org, id string) []int16 {
	company.T.Helper()
	sound := company.Do("GET", "/voicemail/"+id+"/audio", nil)
	path := fixture.TempFile(company.T, "message.wav")
	if err := os.WriteFile(path, sound.Body, 0o600); err != nil || sound.Status != 200 {
		company.T.Fatal(sound.Status, err)
	}
	return fixture.Narrowband(fixture.ReadWAV(company.T, path))
}

// threeSeconds returns a tone at 8 kHz.
func threeSeconds(t *testing.T, hz float64) []int16 {
	t.Helper()
	path, _ := fixture.Tone(t, hz)
	return fixture.Narrowband(fixture.ReadWAV(t, path))[:3*8000]
}

// filesWith returns the files of a folder that contain a text.
func filesWith(t *testing.T, folder, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		if bytes.Contains(b, []byte(text)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Error(fmt.Errorf("search the data folder: %w", err))
	}
	return found
}
