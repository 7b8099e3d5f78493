package e2e

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

func TestTheSandboxIsAWorldOfItsOwn(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: quiet})
	live := newSite(s)
	test := s.Key(live.Org, "test", "all")
	sandbox := &site{Client: test, hooks: test.Hook(nil)}
	outside, inside := live.AddUser("Ada"), sandbox.AddUser("Ada")
	if outside.Extension != inside.Extension {
		t.Fatalf("extensions %s and %s", outside.Extension, inside.Extension)
	}
	_, low := tone(t, 440)
	user := sandbox.AddUser("Bob")
	callee := s.Sipp(rig.Script{Scenario: "answer", Port: sandbox.sippPhone(user.SIP), From: user.SIP.Username, Play: low})
	s.Sipp(rig.Script{Scenario: "call", Login: &inside.SIP, Number: user.Extension, Play: low, Talk: time.Second}).Wait()
	callee.Wait()
	r := sandbox.record(user.Extension)
	if r.String() != "internal completed caller_hangup caller 0" {
		t.Errorf("record: %s", r)
	}
	hears(t, "the recording", sandbox.audio(sandbox.recording(r.CallID).ID, "").PCM[0], 440, 600*time.Millisecond)
	if r := sandbox.record(user.Extension); r.RecordingURL == nil || !strings.Contains(*r.RecordingURL, "/sandbox/v1/") {
		t.Errorf("recording_url of the record: %v", r.RecordingURL)
	}
	sandbox.inOrder(r.CallID, "call.started", "call.answered", "call.recording", "call.transcription", "call.ended")
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
	for _, e := range live.hooks.Events() {
		if e.Event != "user.created" {
			t.Errorf("the live organisation was told %s", e.Event)
		}
	}
	// A telephone of the sandbox does not reach the live organisation's people, whose extensions are the same.
	s.Sipp(rig.Script{Scenario: "call_refused", Status: 480, Login: &inside.SIP, Number: inside.Extension}).Wait()
	if missing := live.Do("GET", "/calls/"+r.CallID, nil); missing.Status != 404 {
		t.Errorf("the live organisation sees a call of the sandbox: %d", missing.Status)
	}
}
