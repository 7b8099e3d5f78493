package sandbox

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

func TestSandbox_IsolatedFromLive(t *testing.T) {
	t.Parallel()
	s := rig.Shared(t, rig.Options{Env: fixture.NoSpeech})
	live := fixture.NewOrg(s)
	test := s.Key(live.Org, "test", "all")
	sandbox := &fixture.Org{Client: test, Webhook: test.Hook(nil)}
	outside, inside := live.AddUser("Ada"), sandbox.AddUser("Ada")
	if outside.Extension != inside.Extension {
		t.Fatalf("extensions %s and %s", outside.Extension, inside.Extension)
	}
	_, low := fixture.Tone(t, 440)
	user := sandbox.AddUser("Bob")
	callee := s.Sipp(rig.Script{Scenario: "answer", Port: sandbox.RegisterSipp(user.SIP), From: user.SIP.Username, Play: low})
	s.Sipp(rig.Script{Scenario: "call", Login: &inside.SIP, Number: user.Extension, Play: low, Talk: time.Second}).Wait()
	callee.Wait()
	r := sandbox.CDR(user.Extension)
	if r.String() != "internal completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
	fixture.Hears(t, "the recording", sandbox.RecordingAudio(sandbox.Recording(r.CallID).ID, "").PCM[0], 440, 600*time.Millisecond)
	if r := sandbox.CDR(user.Extension); r.RecordingURL == nil || !strings.Contains(*r.RecordingURL, "/sandbox/v1/") {
		t.Errorf("recording_url of the record: %v", r.RecordingURL)
	}
	sandbox.WantEvents(r.CallID, "call.started", "call.answered", "call.recording", "call.transcription", "call.ended")
	var memory struct {
		Calls []struct {
			RecordingURL *string `json:"recording_url"`
		}
	}
	rig.Until(t, "the call in memory", 10*time.Second, func() bool {
		sandbox.Want(200, "GET", "/memory/callers/"+inside.Extension, nil, &memory)
		return len(memory.Calls) == 1
	})
	if url := memory.Calls[0].RecordingURL; url == nil || !strings.Contains(*url, "/sandbox/v1/") {
		t.Errorf("recording_url in memory: %+v", memory)
	}
	for _, e := range live.Webhook.Events() {
		if e.Event != "user.created" {
			t.Errorf("the live organisation was told %s", e.Event)
		}
	}
	// A telephone of the sandbox does not reach users of the live organisation, which have the same extensions.
	s.Sipp(rig.Script{Scenario: "call_refused", Status: 480, Login: &inside.SIP, Number: inside.Extension}).Wait()
	if missing := live.Do("GET", "/calls/"+r.CallID, nil); missing.Status != 404 {
		t.Errorf("the live organisation sees a call of the sandbox: %d", missing.Status)
	}
}
