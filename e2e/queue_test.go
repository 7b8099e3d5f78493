package e2e

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/url"
	"os"
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/media"
)

// The tones of a queue.
const (
	musicTone   = 2000
	whisperTone = 2400
)

// sound uploads a tone and returns its id.
func (s *site) upload(hz float64, d time.Duration) string {
	s.T.Helper()
	wav, _ := spoken(s.T, fmt.Sprintf("sound%.0f", hz), media.Tone(hz, -12, d, 8000))
	b, err := os.ReadFile(wav)
	if err != nil {
		s.T.Fatal(err)
	}
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for name, value := range map[string]string{"name": "tone", "kind": "music"} {
		_ = w.WriteField(name, value)
	}
	part, _ := w.CreateFormFile("file", "tone.wav")
	_, _ = part.Write(b)
	_ = w.Close()
	r := s.Do("POST", "/audio", body.Bytes(), "Content-Type", w.FormDataContentType())
	if r.Status != 201 {
		s.T.Fatalf("upload: %d %s", r.Status, r.Body)
	}
	return r.JSON()["id"].(string)
}

// addQueue adds a queue with these agents.
func (s *site) addQueue(settings map[string]any, agents ...rig.User) string {
	s.T.Helper()
	body := map[string]any{"name": "Support"}
	for k, v := range settings {
		body[k] = v
	}
	var made struct{ ID string }
	s.Want(201, "POST", "/queues", body, &made)
	for _, u := range agents {
		s.Want(201, "POST", "/queues/"+made.ID+"/members", map[string]any{"user_id": u.ID}, nil)
	}
	return made.ID
}

func (s *site) presence(u rig.User, status string) {
	s.T.Helper()
	s.Want(200, "PUT", "/agents/"+u.ID+"/presence", map[string]any{"status": status}, nil)
}

// is waits until an agent does something.
func (s *site) is(u rig.User, status string) {
	s.T.Helper()
	rig.Until(s.T, u.Name+" is "+status, 20*time.Second, func() bool { return agent(s.Client, u.ID).String() == status })
}

// A standing is a caller of a queue as the API gives them.
type standing struct {
	ID         string
	CallID     string `json:"call_id"`
	Status     string
	Position   int
	Offers     int
	ExitReason *string `json:"exit_reason"`
}

// standing are the callers of a queue, in any state.
func (s *site) standing(id string) (all []standing) {
	s.T.Helper()
	var page struct{ Data []standing }
	s.Want(200, "GET", "/queues/"+id+"/calls?status=waiting,offering,connected,completed,abandoned,timed_out,overflowed,exited,removed,callback_pending,callback_dialing,callback_failed", nil, &page)
	return page.Data
}

// stands waits until the one caller of a queue is in a state.
func (s *site) stands(id, status string) (e standing) {
	s.T.Helper()
	rig.Until(s.T, "a caller is "+status, 30*time.Second, func() bool {
		for _, e = range s.standing(id) {
			if e.Status == status {
				return true
			}
		}
		return false
	})
	return e
}

// figures are what a queue tells of itself.
type figures struct {
	Waiting int `json:"callers_waiting"`
	Agents  struct {
		Available, Ringing, Busy int
		WrapUp                   int `json:"wrap_up"`
	}
	Level     int `json:"service_level_rate"`
	Callbacks int `json:"callbacks_pending"`
	Today     struct{ Answered, Abandoned, Overflowed int }
}

func (s *site) figures(id string) (f figures) {
	s.T.Helper()
	s.Want(200, "GET", "/queues/"+id+"/stats", nil, &f)
	return f
}

// TestACallerWaitsWithMusicUntilAnAgentAnswers follows a caller through a queue, by ear.
func TestACallerWaitsWithMusicUntilAnAgentAnswers(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: quiet}, func(t *testing.T, s *rig.Server) {
		o := &office{site: newSite(s)}
		o.ada, o.bob = o.AddUser("Ada"), o.AddUser("Bob")
		o.adaPhone = o.phone(o.ada, adaTone, rig.PhoneOptions{})
		o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{})
		id := o.addQueue(map[string]any{"extension": "600", "wrap_up_seconds": 2, "music_audio_id": o.upload(musicTone, 20*time.Second),
			"whisper_audio_id": o.upload(whisperTone, 2*time.Second)}, o.ada)
		o.presence(o.ada, "away")
		o.bobPhone.Dial("600")
		o.stands(id, "waiting")
		pcm := o.bobPhone.Since(o.bobPhone.Mark(), 2*time.Second)
		hears(t, "the caller who waits", pcm, musicTone, time.Second)
		if f := o.figures(id); f.Waiting != 1 || f.Agents.Available != 0 {
			t.Errorf("while the caller waits: %+v", f)
		}
		ada, bob := o.adaPhone.Mark(), o.bobPhone.Mark()
		o.presence(o.ada, "available")
		rings := o.adaPhone.Wait("CALL_INCOMING", "")
		t.Logf("the telephone shows %+v", rings)
		o.stands(id, "offering")
		if f := o.figures(id); f.Agents.Ringing != 1 {
			t.Errorf("while ada rings: %+v", f)
		}
		o.adaPhone.Do("accept", "")
		hears(t, "the agent who answered", o.adaPhone.Since(ada, 1500*time.Millisecond), whisperTone, time.Second)
		o.adaPhone.Since(ada, 3*time.Second)
		o.talks("Ada", o.adaPhone, bobTone)
		o.talks("Bob", o.bobPhone, adaTone)
		heard := o.bobPhone.Since(bob, 4*time.Second)
		hearsNot(t, "the caller", heard, whisperTone, 0)
		if f := o.figures(id); f.Agents.Busy != 1 || f.Waiting != 0 || f.Today.Answered != 1 {
			t.Errorf("while they speak: %+v", f)
		}
		o.bobPhone.Do("hangup", "")
		o.is(o.ada, "wrap_up")
		o.is(o.ada, "available")
		if e := o.standing(id)[0]; e.Status != "completed" || e.Offers != 1 {
			t.Errorf("afterwards: %+v", e)
		}
		var page struct{ Data []map[string]any }
		o.Want(200, "GET", "/cdr?phone="+url.QueryEscape(o.bob.Extension), nil, &page)
		t.Logf("record %v", page.Data[0])
	})
}
