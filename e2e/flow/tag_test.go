package flow

import (
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// TestTag_WrittenAfterHangup lets the caller hang up while the tag step waits for the database. The call is tagged nevertheless.
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
