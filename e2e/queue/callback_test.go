package queue

import (
	"fmt"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// TestCallback_InTurn proves that a caller who presses the callback key and hangs up is dialled when an agent is
// free.
func TestCallback_InTurn(t *testing.T) {
	t.Parallel()
	rig.Each(t, rig.Options{Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		o := &fixture.Office{Org: fixture.NewOrg(s)}
		o.Ada = o.AddUser("Ada")
		o.AdaPhone = o.Phone(o.Ada, fixture.AdaTone, rig.PhoneOptions{})
		id := o.AddQueue(map[string]any{"name": "Sales", "wrap_up_seconds": 1, "music_audio_id": o.UploadTone(2000, 5*time.Second),
			"callback": map[string]any{"enabled": true, "key": "5", "offer_after_seconds": 0}}, o.Ada)
		o.SetPresence(o.Ada, "away")
		way := addQueueCarrier(o.Org, id)
		v := o.CallIn(way, "+12125550142")
		v.WaitTone(0, 2000)
		v.Press("5")
		v.WaitEnd()
		o.WaitQueueEntry(id, "callback_pending")
		if r := queueRecordOf(o.Org, "+12125550142"); r.Status != "canceled" || r.missed() != "" || r.Queue.ID != id {
			t.Errorf("record of who is called back: %+v", r)
		}
		var page struct {
			Data []struct {
				Status   string
				To       string `json:"to_number"`
				Origin   string
				Attempts []struct{ Result string }
			}
		}
		o.Want(200, "GET", "/callbacks?queue_id="+id, nil, &page)
		if len(page.Data) != 1 || page.Data[0].Status != "waiting_agent" || page.Data[0].To != "+12125550142" || page.Data[0].Origin != "queue" {
			t.Fatalf("callbacks %+v", page)
		}
		_, mu := fixture.Tone(t, fixture.BobTone)
		customer := s.Sipp(rig.Script{Scenario: "answer", IP: way.IP, Port: way.Port, Talk: 20 * time.Second, Play: mu, Ring: 300})
		s.Kill() // a callback survives a restart of the server
		s.Start()
		o.SetPresence(o.Ada, "available")
		o.AdaPhone.Wait("CALL_INCOMING", "")
		o.WaitQueueEntry(id, "callback_dialing")
		o.AdaPhone.Do("accept", "")
		o.WaitQueueEntry(id, "connected")
		fixture.Hears(t, "the agent", o.AdaPhone.Since(o.AdaPhone.Mark(), 2*time.Second), fixture.BobTone, time.Second)
		o.AdaPhone.Do("hangup", "")
		_ = customer.End()
		o.WaitQueueEntry(id, "completed")
		o.WaitPresence(o.Ada, "available")
		o.Want(200, "GET", "/callbacks?queue_id="+id, nil, &page)
		if c := page.Data[0]; c.Status != "completed" || len(c.Attempts) != 1 || c.Attempts[0].Result != "completed" {
			t.Errorf("callback %+v", c)
		}
	})
}

// TestCallbackKey_DuringAnnouncement proves that the callback key counts at every moment of an announcement that offers
// it, and in the music after it.
//
// https://github.com/asterisk/asterisk/issues/543
func TestCallbackKey_DuringAnnouncement(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 60*time.Second, "five callers, one after the other")
	o := fixture.NewOrg(rig.Shared(t, rig.Options{Env: fixture.NoSpeech}))
	const announced = 1300
	id := o.AddQueue(map[string]any{"music_audio_id": o.UploadTone(fixture.MusicTone, 5*time.Second),
		"announce": map[string]any{"audio_id": o.UploadTone(announced, 3*time.Second), "every_seconds": 15},
		"callback": map[string]any{"enabled": true, "key": "1", "offer_after_seconds": 0}})
	way := addQueueCarrier(o, id)
	for i, moment := range []time.Duration{0, 300 * time.Millisecond, 1100 * time.Millisecond, 2300 * time.Millisecond,
		3500 * time.Millisecond} {
		v := o.CallIn(way, fmt.Sprintf("+1212555020%d", i))
		mark := v.WaitTone(0, announced)
		v.Since(mark, moment)
		v.Press("1")
		pressed := time.Now()
		rig.Until(t, fmt.Sprintf("a callback for the key after %s", moment), time.Second, func() bool {
			pending := 0
			for _, e := range o.QueueEntries(id) {
				if e.Status == "callback_pending" {
					pending++
				}
			}
			return pending == i+1
		})
		if took := time.Since(pressed); took > promptly() {
			t.Errorf("the key after %s of the announcement took %s", moment, took)
		}
		v.WaitEnd()
	}
}

// promptly returns the longest time that the system may take for a reaction within a second, on this machine.
func promptly() time.Duration { return time.Duration(limit.Slowness() * float64(2*time.Second)) }
