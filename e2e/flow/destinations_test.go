package flow

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// beepTone is the beep before a recording if the server has no voice.
const beepTone = 1000

func TestFlow_QueueVoicemailAndCallback(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}}, func(t *testing.T, s *rig.Server) {
		o := &fixture.Office{Org: fixture.NewOrg(s)}
		o.Bob = o.AddUser("Bob")
		o.BobPhone = o.Phone(o.Bob, fixture.BobTone, rig.PhoneOptions{Auto: true})
		staffed := o.AddQueue(map[string]any{}, o.Bob)
		empty := o.AddQueue(map[string]any{"join_when_no_agents": false})
		lonely := o.AddQueue(map[string]any{})
		greeting, thanks, sorry := o.UploadTone(fixture.GreetingTone, time.Second), o.UploadTone(fixture.OtherTone, time.Second),
			o.UploadTone(fixture.AgainTone, time.Second)
		way := o.AddFlowCarrier(o.AddFlow(
			fixture.Node("menu", "menu", map[string]any{"prompt": greeting, "digits": map[string]any{"1": "q", "2": "e", "3": "c", "4": "l"}, "timeout_seconds": 20},
				"1", "staffed", "2", "empty", "3", "callback", "4", "lonely", "timeout", "bye", "invalid", "bye"),
			fixture.Node("staffed", "queue", map[string]any{"queue_id": staffed, "priority": 5}, "timeout", "bye", "overflow", "bye"),
			fixture.Node("empty", "queue", map[string]any{"queue_id": empty}, "timeout", "bye", "overflow", "bye", "empty", "message"),
			fixture.Node("message", "voicemail", map[string]any{"mailbox": "flow", "max_seconds": 30}, "left", "thanks", "empty", "bye"),
			fixture.Node("callback", "callback", map[string]any{"queue_id": lonely, "confirm_number": true}, "accepted", "thanks", "declined", "bye"),
			fixture.Node("lonely", "queue", map[string]any{"queue_id": lonely, "max_wait_seconds": 5}, "timeout", "sorry", "overflow", "bye"),
			fixture.Node("sorry", "play", map[string]any{"audio_id": sorry}, "done", "bye"),
			fixture.Node("thanks", "play", map[string]any{"audio_id": thanks}, "done", "bye"),
			fixture.Node("bye", "hangup", nil)))
		enter := func(from, key string) (*fixture.Caller, int) {
			v := o.CallIn(way, from)
			at := v.WaitTone(0, fixture.GreetingTone)
			v.Press(key)
			return v, at
		}
		missed := func(from, want, path string) {
			t.Helper()
			r := o.CDR(from)
			reason := ""
			if r.MissedReason != nil {
				reason = *r.MissedReason
			}
			got, steps, _ := o.FlowPath(r.CallID, path)
			if got != path || reason != want {
				t.Errorf("%s: missed %q, want %q; way %q, want %q; %+v", from, reason, want, got, path, steps)
			}
		}

		v, at := enter("+12125550101", "1")
		v.WaitTone(at, fixture.BobTone)
		v.Line.HangUp()
		missed("+12125550101", "", "menu:1 staffed:answered")

		v, at = enter("+12125550102", "2")
		v.WaitTone(at, beepTone) // the beep replaces the greeting if the server has no voice
		v.Since(v.Mark(), 4*time.Second)
		v.Press("#")
		v.WaitTone(v.Mark(), fixture.OtherTone)
		v.WaitEnd()
		missed("+12125550102", "voicemail", "menu:2 empty:empty message:left thanks:done bye")
		var boxes struct {
			Data []struct {
				From     string `json:"from_number"`
				Duration int    `json:"duration_seconds"`
			}
		}
		o.Want(200, "GET", "/voicemail", nil, &boxes)
		if len(boxes.Data) != 1 || boxes.Data[0].From != "+12125550102" || boxes.Data[0].Duration < 2 {
			t.Errorf("messages: %+v", boxes.Data)
		}

		v, at = enter("+12125550103", "4")
		v.WaitTone(at, fixture.AgainTone)
		v.WaitEnd()
		if got, _, _ := o.FlowPath(o.CDR("+12125550103").CallID, "menu:4 lonely:timeout sorry:done bye"); got != "menu:4 lonely:timeout sorry:done bye" {
			t.Errorf("way of who waited in vain: %s", got)
		}

		v, at = enter("+12125550104", "3")
		v.WaitTone(at, beepTone)
		v.Press("2")
		v.WaitTone(v.Mark(), beepTone)
		v.Press("2125550188#")
		v.WaitTone(v.Mark(), beepTone)
		v.Press("1")
		v.WaitTone(at, fixture.OtherTone)
		v.WaitEnd()
		if got, _, _ := o.FlowPath(o.CDR("+12125550104").CallID, "menu:3 callback:accepted thanks:done bye"); got != "menu:3 callback:accepted thanks:done bye" {
			t.Errorf("way of who is called back: %s", got)
		}
		var page struct {
			Data []struct {
				To     string `json:"to_number"`
				Queue  string `json:"queue_id"`
				Status string
				Origin string
			}
		}
		o.Want(200, "GET", "/callbacks", nil, &page)
		if len(page.Data) != 1 || page.Data[0].To != "+12125550188" || page.Data[0].Queue != lonely || page.Data[0].Origin != "queue" {
			t.Errorf("callbacks: %+v", page.Data)
		}
		if strings.Contains(s.Log(), "level=ERROR") {
			t.Errorf("errors in the log")
		}
	})
}
