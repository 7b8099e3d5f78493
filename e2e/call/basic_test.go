package call

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestCall_BetweenExtensions(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{}, func(t *testing.T, s *rig.Server) {
		office := fixture.NewOrg(s)
		ada, bob := office.AddUser("Ada"), office.AddUser("Bob")
		low, _ := fixture.Tone(t, 440)
		high, _ := fixture.Tone(t, 1000)
		caller := s.Phone(ada.SIP, rig.PhoneOptions{Say: low})
		callee := s.Phone(bob.SIP, rig.PhoneOptions{Say: high})

		caller.Do("dial", bob.Extension)
		callee.Wait("CALL_INCOMING", "")
		caller.Wait("CALL_RINGING", "")
		callee.Do("accept", "")
		caller.Wait("CALL_ESTABLISHED", "")
		callee.Wait("CALL_ESTABLISHED", "")
		wantCall(office, ada, bob)

		caller.Listen(1500 * time.Millisecond)
		callee.Listen(1500 * time.Millisecond)
		caller.Do("sndcode", "5")
		callee.Wait("CALL_DTMF_START", "5")
		callee.Do("sndcode", "9")
		caller.Wait("CALL_DTMF_START", "9")
		callee.Listen(4 * time.Second)
		caller.Do("hangup", "")
		callee.Wait("CALL_CLOSED", "")

		record := office.CDR(ada.Extension)
		wantCDR(office, record, ada, bob)
		fixture.Hears(t, "Ada", fixture.ReadWAV(t, caller.Close()).PCM[0], 1000, 3*time.Second)
		fixture.Hears(t, "Bob", fixture.ReadWAV(t, callee.Close()).PCM[0], 440, 3*time.Second)
		wantRecording(office, record)
		office.WantEvents(record.CallID, "call.started", "call.answered", "call.recording", "call.transcription", "call.ended")
	})
}

// wantCall checks the call while it is in progress.
func wantCall(s *fixture.Org, caller, callee rig.User) {
	s.T.Helper()
	live := s.LiveCall(func(c map[string]any) bool { return c["status"] == "in_progress" })
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

// wantCDR checks the record of a call that the caller ended after some four seconds.
func wantCDR(s *fixture.Org, r fixture.CDR, caller, callee rig.User) {
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

// wantRecording checks the recording: the caller's 440 Hz left, the callee's 1000 Hz right, also in parts.
func wantRecording(s *fixture.Org, r fixture.CDR) {
	s.T.Helper()
	rec := s.Recording(r.CallID)
	both := s.RecordingAudio(rec.ID, "")
	if rec.Channels != 2 || rec.Rate != 8000 || len(both.PCM) != 2 {
		s.T.Fatalf("recording %+v holds %d channels", rec, len(both.PCM))
	}
	length := fixture.SampleDuration(len(both.PCM[0]))
	if (length-time.Duration(r.Talk)*time.Second).Abs() > time.Second ||
		(length-time.Duration(rec.Duration)*time.Second).Abs() > time.Second {
		s.T.Errorf("recording of %s (said to be %d s) for %d s of talk", length, rec.Duration, r.Talk)
	}
	for side, want := range map[string]float64{"caller": 440, "agent": 1000} {
		one := s.RecordingAudio(rec.ID, "?channel="+side)
		if len(one.PCM) != 1 || len(one.PCM[0]) != len(both.PCM[0]) {
			s.T.Fatalf("channel %s: %d channels of %d samples, want 1 of %d", side, len(one.PCM), len(one.PCM[0]), len(both.PCM[0]))
		}
		fixture.Hears(s.T, "channel "+side, one.PCM[0], want, 3*time.Second)
		fixture.HearsNot(s.T, "channel "+side, one.PCM[0], 1440-want, 0)
	}
	fixture.Hears(s.T, "the left channel", both.PCM[0], 440, 3*time.Second)
	fixture.Hears(s.T, "the right channel", both.PCM[1], 1000, 3*time.Second)
	wantRanges(s, rec)
}

// wantRanges downloads a recording by ranges.
func wantRanges(s *fixture.Org, rec fixture.Recording) {
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

func TestCall_OverTCP(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	office := fixture.NewOrg(s)
	ada, bob := office.AddUser("Ada"), office.AddUser("Bob")
	low, _ := fixture.Tone(t, 440)
	high, _ := fixture.Tone(t, 1000)
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
	for _, r := range office.CDRs(2, "") {
		if got := r.String(); got != "internal completed caller_hangup caller 0" {
			t.Errorf("record: %s", got)
		}
	}
	fixture.Hears(t, "the phone connected by TCP", fixture.ReadWAV(t, tcp.Close()).PCM[0], 1000, 800*time.Millisecond)
	fixture.Hears(t, "the phone it called", fixture.ReadWAV(t, udp.Close()).PCM[0], 440, 800*time.Millisecond)
}

func TestCall_Linphone(t *testing.T) {
	t.Parallel()
	o, bob := fixture.NewOfficeWithLinphone(t)
	bob.Dial(o.Ada.Extension)
	o.HearsOnly("Bob, who called,", bob, fixture.AdaTone)
	o.HearsOnly("Ada, who was called,", o.AdaPhone, fixture.BobTone)
	bob.Do("terminate")
	o.AdaPhone.Wait("CALL_CLOSED", "")
	if r := o.CDR(o.Ada.Extension); r.String() != "internal completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
	o.AdaPhone.Dial(o.Bob.Extension)
	o.HearsOnly("Ada, who called,", o.AdaPhone, fixture.BobTone)
	o.AdaPhone.Do("hangup", "")
	bob.Wait(`Call \d+ with .* ended`)
}
