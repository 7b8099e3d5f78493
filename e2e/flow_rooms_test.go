package e2e

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// beepTone is heard where nothing can speak.
const beepTone = 1000

func TestAFlowLeadsIntoQueuesMailboxesAndCallbacks(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off"}}, func(t *testing.T, s *rig.Server) {
		o := &office{site: newSite(s)}
		o.bob = o.AddUser("Bob")
		o.bobPhone = o.phone(o.bob, bobTone, rig.PhoneOptions{Auto: true})
		staffed := o.addQueue(map[string]any{}, o.bob)
		empty := o.addQueue(map[string]any{"join_when_no_agents": false})
		lonely := o.addQueue(map[string]any{})
		greeting, thanks, sorry := o.sound(greetingTone, time.Second), o.sound(otherTone, time.Second), o.sound(againTone, time.Second)
		way := o.line(o.flow(
			node("menu", "menu", map[string]any{"prompt": greeting, "digits": map[string]any{"1": "q", "2": "e", "3": "c", "4": "l"}, "timeout_seconds": 20},
				"1", "staffed", "2", "empty", "3", "callback", "4", "lonely", "timeout", "bye", "invalid", "bye"),
			node("staffed", "queue", map[string]any{"queue_id": staffed, "priority": 5}, "timeout", "bye", "overflow", "bye"),
			node("empty", "queue", map[string]any{"queue_id": empty}, "timeout", "bye", "overflow", "bye", "empty", "message"),
			node("message", "voicemail", map[string]any{"mailbox": "flow", "max_seconds": 30}, "left", "thanks", "empty", "bye"),
			node("callback", "callback", map[string]any{"queue_id": lonely, "confirm_number": true}, "accepted", "thanks", "declined", "bye"),
			node("lonely", "queue", map[string]any{"queue_id": lonely, "max_wait_seconds": 5}, "timeout", "sorry", "overflow", "bye"),
			node("sorry", "play", map[string]any{"audio_id": sorry}, "done", "bye"),
			node("thanks", "play", map[string]any{"audio_id": thanks}, "done", "bye"),
			node("bye", "hangup", nil)))
		enter := func(from, key string) (*visitor, int) {
			v := o.visit(way, from)
			at := v.hears(0, greetingTone)
			v.press(key)
			return v, at
		}
		missed := func(from, want, path string) {
			t.Helper()
			r := o.record(from)
			reason := ""
			if r.MissedReason != nil {
				reason = *r.MissedReason
			}
			got, steps, _ := o.passed(r.CallID)
			if got != path || reason != want {
				t.Errorf("%s: missed %q, want %q; way %q, want %q; %+v", from, reason, want, got, path, steps)
			}
		}

		v, at := enter("+12125550101", "1")
		v.hears(at, bobTone)
		v.line.HangUp()
		missed("+12125550101", "", "menu:1 staffed:answered")

		v, at = enter("+12125550102", "2")
		v.hears(at, beepTone) // the greeting, where nothing can be spoken
		v.Since(v.Mark(), 4*time.Second)
		v.press("#")
		v.hears(v.Mark(), otherTone)
		v.ends()
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
		v.hears(at, againTone)
		v.ends()
		if got, _, _ := o.passed(o.record("+12125550103").CallID); got != "menu:4 lonely:timeout sorry:done bye" {
			t.Errorf("way of who waited in vain: %s", got)
		}

		v, at = enter("+12125550104", "3")
		v.hears(at, beepTone)
		v.press("2")
		v.hears(v.Mark(), beepTone)
		v.press("2125550188#")
		v.hears(v.Mark(), beepTone)
		v.press("1")
		v.hears(at, otherTone)
		v.ends()
		if got, _, _ := o.passed(o.record("+12125550104").CallID); got != "menu:3 callback:accepted thanks:done bye" {
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
