package flow

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// TestTag_WrittenAfterHangup proves that a call is tagged even if the caller hangs up while the tag step waits for
// the database.
func TestTag_WrittenAfterHangup(t *testing.T) {
	t.Parallel()
	s := fixture.NewOrg(rig.Start(t, rig.Options{Env: fixture.NoSpeech}))
	before, after := s.UploadTone(fixture.AdaTone, 2*time.Second), s.UploadTone(fixture.BobTone, 2*time.Second)
	way := s.AddFlowCarrier(s.AddFlow(fixture.Node("before", "play", map[string]any{"audio_id": before}, "done", "tag"),
		fixture.Node("tag", "tag", map[string]any{"tags": []string{"heard"}}, "done", "after"),
		fixture.Node("after", "play", map[string]any{"audio_id": after}, "done", "bye"), fixture.Node("bye", "hangup", nil)))
	v := s.CallIn(way, "+12125550101")
	begun := v.WaitTone(0, fixture.AdaTone)
	unlock := fixture.LockDatabase(t, s.Server)
	fixture.HearsNot(t, "the caller, while the tag is written,", v.Since(begun, 3*time.Second), fixture.BobTone, 100*time.Millisecond)
	v.Line.HangUp()
	v.WaitEnd()
	unlock()
	rig.Until(t, "the tag of the call", 0, func() bool { return len(s.CDR("+12125550101").Tags) == 1 })
}

// TestCallbackStep_StoredAfterHangup proves that a callback is stored even if the caller, after accepting it, hangs
// up while the server waits for the database.
func TestCallbackStep_StoredAfterHangup(t *testing.T) {
	t.Parallel()
	s := fixture.NewOrg(rig.Start(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}}))
	way := s.AddFlowCarrier(s.AddFlow(fixture.Node("hello", "play", map[string]any{"audio_id": s.UploadTone(fixture.AdaTone, time.Second)}, "done", "offer"),
		fixture.Node("offer", "callback", map[string]any{"queue_id": s.AddQueue(map[string]any{})}, "accepted", "bye", "declined", "bye"),
		fixture.Node("bye", "hangup", nil)))
	v := s.CallIn(way, "+12125550101")
	at := v.WaitTone(0, fixture.AdaTone)
	v.Since(at, 2*time.Second) // the offer is a beep without a voice
	unlock := fixture.LockDatabase(t, s.Server)
	v.Press("1")
	v.Since(v.Mark(), time.Second)
	v.Line.HangUp()
	v.WaitEnd()
	unlock()
	var page struct{ Data []struct{ Status string } }
	rig.Until(t, "the callback", 0, func() bool {
		s.Want(200, "GET", "/callbacks", nil, &page)
		return len(page.Data) == 1
	})
	if page.Data[0].Status == "canceled" {
		t.Errorf("the callback is %s", page.Data[0].Status)
	}
}
