package speech

import (
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// An organisation speaks German, and the engines of this machine know English only. A prompt that nothing can speak is a
// warning when the flow is validated and published. A call leaves it out, its timeline says so, and the flow goes on. The
// recorded call is not transcribed into English words.
//
// https://github.com/OpenWhispr/openwhispr/issues/260
func TestLanguage_GermanCall(t *testing.T) {
	t.Parallel()
	o := fixture.NewOffice(rig.Shared(t, rig.Options{}))
	o.Want(200, "PATCH", "/organization", map[string]any{"language": "de"}, nil)
	nodes := []map[string]any{
		fixture.Node("hallo", "play", map[string]any{"text": "Willkommen bei der Beispiel GmbH."}, "done", "bob"),
		fixture.Node("bob", "transfer", map[string]any{"to": "ext:" + o.Bob.Extension}, "failed", "bye"), fixture.Node("bye", "hangup", nil)}
	var told struct {
		ID       string
		Valid    bool
		Warnings []struct {
			Node string `json:"node_id"`
			Code string
		}
	}
	want := func(where string) {
		t.Helper()
		if len(told.Warnings) != 1 || told.Warnings[0].Node != "hallo" || told.Warnings[0].Code != "language_not_spoken" {
			t.Errorf("%s: %+v", where, told)
		}
		told.Warnings = nil
	}
	body := map[string]any{"name": "Deutsch", "entry": "hallo", "nodes": nodes}
	o.Want(200, "POST", "/flows/validate", body, &told)
	want("validate")
	o.Want(201, "POST", "/flows", body, &told)
	want("create")
	o.Want(200, "POST", "/flows/"+told.ID+"/publish", map[string]any{}, &told)
	want("publish")

	if says, _ := o.Server.TryCommand("doctor"); !strings.Contains(says, "language_not_spoken: callers do not hear a text at node hallo") {
		t.Errorf("the doctor says %s", says)
	}
	v := o.CallIn(o.AddFlowCarrier(told.ID), "+12125550101")
	v.WaitTone(0, fixture.BobTone)
	v.Line.HangUp()
	r := o.CDR("+12125550101")
	path, steps, _ := o.FlowPath(r.CallID, "hallo:done bob:answered")
	if path != "hallo:done bob:answered" || !strings.Contains(steps[0].Problem, "not heard") {
		t.Errorf("the flow went %s %+v", path, steps)
	}
	var got struct {
		Status, Language, Text string
		Reason                 string `json:"skipped_reason"`
	}
	rig.Until(t, "the transcript", time.Minute, func() bool {
		o.Want(200, "GET", "/calls/"+r.CallID+"/transcript", nil, &got)
		return slices.Contains([]string{"completed", "skipped", "failed"}, got.Status)
	})
	if got.Status != "skipped" || got.Reason != "language_not_supported" || got.Language != "de" || got.Text != "" {
		t.Errorf("the transcript is %+v", got)
	}
	var note struct {
		Status  string
		Summary string `json:"ai_summary"`
	}
	o.Want(200, "GET", "/calls/"+r.CallID+"/summary", nil, &note)
	if note.Status != "skipped" || note.Summary != "" {
		t.Errorf("the note is %+v", note)
	}
}
