// Package e2e proves the product as its customers meet it: the real binary, real telephones, real carriers.
package e2e

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/media"
)

func TestMain(m *testing.M) { rig.Main(m) }

// recorded is a recording as the API gives it.
type recorded struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Channels int    `json:"channels"`
	Rate     int    `json:"sample_rate_hz"`
	Duration int    `json:"duration_seconds"`
	Size     int    `json:"size_bytes"`
	URL      string `json:"url"`
}

// recording waits until the recording of a call can be fetched.
func (s *site) recording(callID string) recorded {
	s.T.Helper()
	s.hooks.Wait("call.recording", time.Minute, func(e rig.Event) bool { return e.Data["call_id"] == callID })
	var r recorded
	s.Want(200, "GET", "/calls/"+callID+"/recording", nil, &r)
	if r.Status != "available" {
		s.T.Fatalf("recording of %s: %+v", callID, r)
	}
	return r
}

// audio downloads a recording; query chooses a channel.
func (s *site) audio(id, query string) media.WAV {
	s.T.Helper()
	r := s.Do("GET", "/recordings/"+id+"/audio"+query, nil)
	if r.Status != 200 {
		s.T.Fatalf("audio of %s: %d %s", id, r.Status, r.Body)
	}
	path := temporary(s.T, "downloaded.wav")
	if err := os.WriteFile(path, r.Body, 0o600); err != nil {
		s.T.Fatal(err)
	}
	return read(s.T, path)
}

func TestTwoPhonesTalkByExtension(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{}, func(t *testing.T, s *rig.Server) {
		office := newSite(s)
		ada, bob := office.AddUser("Ada"), office.AddUser("Bob")
		low, _ := tone(t, 440)
		high, _ := tone(t, 1000)
		caller := s.Phone(ada.SIP, rig.PhoneOptions{Say: low})
		callee := s.Phone(bob.SIP, rig.PhoneOptions{Say: high})

		caller.Do("dial", bob.Extension)
		callee.Wait("CALL_INCOMING", "")
		caller.Wait("CALL_RINGING", "")
		callee.Do("accept", "")
		caller.Wait("CALL_ESTABLISHED", "")
		callee.Wait("CALL_ESTABLISHED", "")
		office.talks(ada, bob)

		caller.Listen(1500 * time.Millisecond)
		callee.Listen(1500 * time.Millisecond)
		caller.Do("sndcode", "5")
		callee.Wait("CALL_DTMF_START", "5")
		callee.Do("sndcode", "9")
		caller.Wait("CALL_DTMF_START", "9")
		callee.Listen(4 * time.Second)
		caller.Do("hangup", "")
		callee.Wait("CALL_CLOSED", "")

		record := office.record(ada.Extension)
		office.ended(record, ada, bob)
		hears(t, "Ada", read(t, caller.Close()).PCM[0], 1000, 3*time.Second)
		hears(t, "Bob", read(t, callee.Close()).PCM[0], 440, 3*time.Second)
		office.keeps(record)
		office.inOrder(record.CallID, "call.started", "call.answered", "call.recording", "call.transcription", "call.ended")
	})
}

// talks checks the call while it is in progress.
func (s *site) talks(caller, callee rig.User) {
	s.T.Helper()
	live := s.live(func(c map[string]any) bool { return c["status"] == "in_progress" })
	legs, _ := live["legs"].([]any)
	if live["from_number"] != caller.Extension || live["to_number"] != callee.Extension || live["agent_id"] != callee.ID || len(legs) != 2 {
		s.T.Errorf("call in progress: %v", live)
	}
	if state := live["recording"].(map[string]any)["state"]; state != "recording" {
		s.T.Errorf("recording is %v during the call", state)
	}
	for _, l := range legs {
		if leg := l.(map[string]any); leg["status"] != "answered" || leg["codec"] != "PCMU" || leg["device_id"] == nil {
			s.T.Errorf("leg: %v", leg)
		}
	}
}

// ended checks the record of a call that the caller ended after some four seconds.
func (s *site) ended(r cdr, caller, callee rig.User) {
	s.T.Helper()
	if got := r.String(); got != "internal completed caller_hangup caller 0" {
		s.T.Errorf("record: %s", got)
	}
	if r.From != caller.Extension || r.To != callee.Extension || r.FromName == nil || *r.FromName != caller.Name {
		s.T.Errorf("record is from %s (%v) to %s", r.From, r.FromName, r.To)
	}
	if r.Agent == nil || r.Agent.ID != callee.ID || r.Agent.Extension != callee.Extension {
		s.T.Errorf("agent of the record: %+v", r.Agent)
	}
	talk := r.EndedAt.Sub(*r.AnsweredAt)
	if r.Talk < 4 || r.Hold != 0 || (talk-time.Duration(r.Talk)*time.Second).Abs() > 600*time.Millisecond || r.Total < r.Talk {
		s.T.Errorf("times of the record: %+v, %s between answer and end", r, talk)
	}
	if r.Q850 == nil || *r.Q850 != 16 {
		s.T.Errorf("Q.850 cause of the record: %v", r.Q850)
	}
}

// keeps checks the recording: the caller's 440 Hz left, the callee's 1000 Hz right, also in parts.
func (s *site) keeps(r cdr) {
	s.T.Helper()
	rec := s.recording(r.CallID)
	both := s.audio(rec.ID, "")
	if rec.Channels != 2 || rec.Rate != 8000 || len(both.PCM) != 2 {
		s.T.Fatalf("recording %+v holds %d channels", rec, len(both.PCM))
	}
	length := seconds(len(both.PCM[0]))
	if (length-time.Duration(r.Talk)*time.Second).Abs() > time.Second || (length-time.Duration(rec.Duration)*time.Second).Abs() > time.Second {
		s.T.Errorf("recording of %s (said to be %d s) for %d s of talk", length, rec.Duration, r.Talk)
	}
	for side, want := range map[string]float64{"caller": 440, "agent": 1000} {
		one := s.audio(rec.ID, "?channel="+side)
		if len(one.PCM) != 1 || len(one.PCM[0]) != len(both.PCM[0]) {
			s.T.Fatalf("channel %s: %d channels of %d samples, want 1 of %d", side, len(one.PCM), len(one.PCM[0]), len(both.PCM[0]))
		}
		hears(s.T, "channel "+side, one.PCM[0], want, 3*time.Second)
		hearsNot(s.T, "channel "+side, one.PCM[0], 1440-want, 0)
	}
	hears(s.T, "the left channel", both.PCM[0], 440, 3*time.Second)
	hears(s.T, "the right channel", both.PCM[1], 1000, 3*time.Second)
	s.inParts(rec)
}

// inParts downloads a recording by ranges.
func (s *site) inParts(rec recorded) {
	s.T.Helper()
	path := "/recordings/" + rec.ID + "/audio"
	whole := s.Do("GET", path, nil)
	if len(whole.Body) != rec.Size || whole.Header.Get("Accept-Ranges") != "bytes" {
		s.T.Errorf("audio has %d bytes, want %d; Accept-Ranges %q", len(whole.Body), rec.Size, whole.Header.Get("Accept-Ranges"))
	}
	part := s.Do("GET", path, nil, "Range", "bytes=1000-1999")
	if want := fmt.Sprintf("bytes 1000-1999/%d", rec.Size); part.Status != 206 || part.Header.Get("Content-Range") != want {
		s.T.Errorf("range: %d %q, want 206 %q", part.Status, part.Header.Get("Content-Range"), want)
	}
	if !bytes.Equal(part.Body, whole.Body[1000:2000]) {
		s.T.Errorf("the range holds other bytes than the whole")
	}
	if beyond := s.Do("GET", path, nil, "Range", fmt.Sprintf("bytes=%d-", rec.Size)); beyond.Status != 416 {
		s.T.Errorf("range beyond the end: %d, want 416", beyond.Status)
	}
}

func TestTheSideThatHangsUpIsNamed(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	office := newSite(s)
	ada, bob := office.AddUser("Ada"), office.AddUser("Bob")
	low, _ := tone(t, 440)
	caller := s.Phone(ada.SIP, rig.PhoneOptions{Say: low})
	callee := s.Phone(bob.SIP, rig.PhoneOptions{Say: low, Auto: true})
	caller.Dial(bob.Extension)
	callee.Listen(500 * time.Millisecond)
	callee.Do("hangup", "")
	caller.Wait("CALL_CLOSED", "")
	if got := office.record(ada.Extension).String(); got != "internal completed agent_hangup agent 0" {
		t.Errorf("record: %s", got)
	}
}

func TestAPhoneConnectedByTCPCallsAndIsCalled(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	office := newSite(s)
	ada, bob := office.AddUser("Ada"), office.AddUser("Bob")
	low, _ := tone(t, 440)
	high, _ := tone(t, 1000)
	tcp := s.Phone(ada.SIP, rig.PhoneOptions{Say: low, Transport: "tcp", Auto: true})
	udp := s.Phone(bob.SIP, rig.PhoneOptions{Say: high, Auto: true})
	tcp.Dial(bob.Extension)
	tcp.Listen(time.Second)
	tcp.Do("hangup", "")
	udp.Wait("CALL_CLOSED", "")
	udp.Dial(ada.Extension)
	udp.Listen(time.Second)
	tcp.Wait("CALL_ESTABLISHED", "")
	tcp.Listen(time.Second)
	udp.Do("hangup", "")
	tcp.Wait("CALL_CLOSED", "")
	for _, r := range office.records(2, "") {
		if got := r.String(); got != "internal completed caller_hangup caller 0" {
			t.Errorf("record: %s", got)
		}
	}
	hears(t, "the phone connected by TCP", read(t, tcp.Close()).PCM[0], 1000, 800*time.Millisecond)
	hears(t, "the phone it called", read(t, udp.Close()).PCM[0], 440, 800*time.Millisecond)
}

// quiet switches recognition off, which many calls at once do not need.
var quiet = map[string]string{"SONIQ_TRANSCRIBER": "off"}
