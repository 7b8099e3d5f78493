package webhook

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op/optest"
)

// replay replays the range around now and returns the number of deliveries.
func (h *fixture) replay(id string, more map[string]any) int {
	h.t.Helper()
	body := map[string]any{"since": h.cfg.Clock.Now().Add(-time.Hour).Format(time.RFC3339)}
	for k, v := range more {
		body[k] = v
	}
	return int(h.api.Do(admin(h), "POST", "/webhooks/"+id+"/replay", body).Want(202).At("queued").(float64))
}

// Failed events are sent again, in order per call and with the same ids. Received events are not sent again, and none
// is sent twice.
func TestReplayRange_FailedEvents(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d, nil)
		h.run()
		var bad atomic.Bool
		bad.Store(true)
		r := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if bad.Load() && n > 2 {
				w.Header().Set("webhook-delivery", "abort-message")
				w.WriteHeader(500)
			}
		})
		id, _ := h.create(r.URL, nil)
		h.publish(numberedEvents("call_1", 2)...)
		eventually(t, "two are received", func() bool { return r.count() == 2 && h.open() == 0 })
		for i := range 4 {
			h.publish(numberedEvents(callName(i%2), 1)...)
			eventually(t, "one more is given up", func() bool { return r.count() == 3+i && h.open() == 0 })
		}
		failed := r.list()[2:]
		bad.Store(false)
		if n := h.replay(id, nil); n != 4 {
			t.Fatalf("%d are sent again, want 4", n)
		}
		eventually(t, "they are received", func() bool { return r.count() == 10 && h.open() == 0 })
		again := r.list()[6:]
		var was, is []string
		for i := range 4 {
			was, is = append(was, failed[i].Get("Webhook-Id")+failed[i].body), append(is, again[i].Get("Webhook-Id")+again[i].body)
		}
		slices.Sort(was)
		slices.Sort(is)
		if !slices.Equal(was, is) {
			t.Errorf("sent again: %v, want %v", is, was)
		}
		checkOrder(t, again)
		if n := h.replay(id, nil); n != 0 {
			t.Errorf("%d are sent again although all were received", n)
		}
		if n := h.replay(id, map[string]any{"only_failed": false}); n != 6 {
			t.Errorf("%d of all 6 events are sent again", n)
		}
	})
}

// A formerly disabled endpoint receives the events of the meantime, with its filters and its timing of call.ended.
func TestReplayRange_MissedWhileDisabled(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d, nil)
		h.run()
		r := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 1 {
				w.WriteHeader(410)
			}
		})
		h.publish(event.CallMissed{CallID: "call_before"})
		eventually(t, "it was handed on", func() bool { return h.unnumbered() == 0 })
		id, _ := h.create(r.URL, map[string]any{"events": []string{"call.missed", "user.created"}})
		h.publish(event.CallMissed{CallID: "call_gone"})
		eventually(t, "the endpoint is disabled", func() bool { return h.get("/webhooks/"+id).Text("status") == string(Disabled) })
		h.publish(event.CallMissed{CallID: "call_1"}, event.CallRecording{CallID: "call_1"}, event.UserCreated{UserID: "usr_1"})
		eventually(t, "they were handed on", func() bool { return h.unnumbered() == 0 })
		h.api.Do(admin(h), "POST", "/webhooks/"+id+"/replay", map[string]any{"since": "2020-01-01"}).Want(409).Refused("invalid_state")
		h.api.Do(admin(h), "PATCH", "/webhooks/"+id, map[string]any{"status": "active"}).Want(200)
		if n := h.replay(id, map[string]any{"events": []string{"user.created"}}); n != 1 {
			t.Errorf("%d of one kind", n)
		}
		if n := h.replay(id, map[string]any{"since": "2020-01-01"}); n != 2 { // the discarded one, and one without a delivery
			t.Errorf("%d, want what failed and what it missed", n)
		}
		eventually(t, "they are received", func() bool { return r.count() == 4 && h.open() == 0 })
		if n := h.replay(id, map[string]any{"since": "2020-01-01", "only_failed": false, "events": []string{"call.missed"}}); n != 3 {
			t.Errorf("%d of all, want the one from before the webhook too", n)
		}
	})
}

// A paused webhook holds the replayed events. A long range is replayed in several requests that together cover all
// events.
func TestReplayRange_LongRangeInParts(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t), nil)
	h.run()
	r := newReceiver(t, nil)
	h.replayMost = 4 * replayBatch
	const events = 4*replayBatch + 300
	for i := range events / 100 {
		h.publish(numberedEvents(callName(i), 100)...)
	}
	eventually(t, "they were handed on", func() bool { return h.unnumbered() == 0 })
	id, _ := h.create(r.URL, map[string]any{"events": []string{"call.recording"}})
	h.api.Do(admin(h), "PATCH", "/webhooks/"+id, map[string]any{"status": "paused"}).Want(200)
	a := h.api.Do(admin(h), "POST", "/webhooks/"+id+"/replay", map[string]any{"since": "2020-01-01", "only_failed": false}).Want(202)
	first := int(a.At("queued").(float64))
	if first != h.replayMost || a.At("next_after_sequence") == nil {
		t.Fatalf("first piece: %s", a.Bytes)
	}
	a = h.api.Do(admin(h), "POST", "/webhooks/"+id+"/replay", map[string]any{"since": "2020-01-01", "only_failed": false,
		"after_sequence": a.At("next_after_sequence")}).Want(202)
	if n := int(a.At("queued").(float64)); first+n != events || a.At("next_after_sequence") != nil {
		t.Errorf("second piece: %s", a.Bytes)
	}
	if n := countHeld(h.deliveries(id)); n != events || r.count() != 0 {
		t.Errorf("%d wait, %d were sent", n, r.count())
	}
}

func TestReplayRange_InvalidRefused(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t), nil)
	id, _ := h.create("https://example.com/", nil)
	do := func(body map[string]any) *optest.Answer {
		return h.api.Do(admin(h), "POST", "/webhooks/"+id+"/replay", body)
	}
	do(map[string]any{}).Want(422).Refused("validation_failed", "since required")
	do(map[string]any{"since": "yesterday", "until": "x", "events": []string{"y"}}).Want(422).
		Refused("validation_failed", "since invalid_time", "until invalid_time", "events[0] unknown_event")
	do(map[string]any{"since": "2026-01-31", "until": "2026-01-31"}).Want(422).Refused("validation_failed", "until out_of_range")
	other := optest.Admin(newOrg(t, h.cfg.DB))
	h.api.Do(other, "POST", "/webhooks/"+id+"/replay", map[string]any{"since": "2020-01-01"}).Want(404)
}

func TestSandbox_ForcedFailuresRetried(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newClock()
		h := newFixture(t, d, c.now)
		h.run()
		r := newReceiver(t, nil)
		id, _ := h.create(r.URL, nil)
		sandbox := optest.Admin(h.org)
		h.api.Do(sandbox, "POST", "/sandbox/webhooks/fail", map[string]any{"webhook_id": id, "times": 2}).Want(404)
		sandbox.Environment = "sandbox"
		h.api.Do(sandbox, "POST", "/sandbox/webhooks/fail", map[string]any{"webhook_id": "whk_none", "times": 2}).Want(404)
		h.api.Do(sandbox, "POST", "/sandbox/webhooks/fail", map[string]any{"webhook_id": id, "times": 2, "status": 503}).Want(200)
		h.publish(event.CallMissed{CallID: "call_1"})
		for n := 1; n <= 2; n++ {
			eventually(t, "an attempt is written down", func() bool {
				all := h.deliveries(id)
				return len(all) == 1 && all[0].Attempts == n
			})
			c.set(h.deliveries(id)[0].NextAt.Time)
			h.wake()
		}
		eventually(t, "it is delivered", func() bool { return h.open() == 0 })
		one := h.get(fmt.Sprintf("/webhooks/%s/deliveries/%s", id, h.deliveries(id)[0].ID))
		if r.count() != 1 || r.list()[0].Get("X-Service-Attempt") != "3" || one.At("attempts.1.response_status") != 503.0 ||
			one.Text("attempts.1.error") != faultStatus || !strings.Contains(one.Text("attempts.0.response_body"), "nothing was sent") {
			t.Errorf("%d requests, delivery %s", r.count(), one.Bytes)
		}
	})
}

func TestSandbox_TriggeredEvents(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t), nil)
	h.run()
	r := newReceiver(t, nil)
	_, secret := h.create(r.URL, map[string]any{"filters": map[string]any{"direction": "outbound"}})
	sandbox := optest.Admin(h.org)
	h.api.Do(sandbox, "POST", "/sandbox/events/trigger", map[string]any{"event": "call.ended"}).Want(404)
	sandbox.Environment = "sandbox"
	do := func(body map[string]any) *optest.Answer {
		return h.api.Do(sandbox, "POST", "/sandbox/events/trigger", body)
	}
	do(map[string]any{"event": "call.exploded"}).Want(422).Refused("validation_failed", "event unknown_event")
	for _, data := range []map[string]any{{"no_such": 1}, {"talk_duration_seconds": "x"}, {"call_id": strings.Repeat("x", 50)}} {
		do(map[string]any{"event": "call.ended", "data": data}).Want(422).Refused("validation_failed", "data invalid")
	}
	do(map[string]any{"event": "call.ended", "data": map[string]any{"call_id": "a\x00b"}}).Want(422).Refused("validation_failed", "data.call_id invalid_value")
	for _, k := range event.Kinds() {
		do(map[string]any{"event": string(k)}).Want(202)
	}
	a := do(map[string]any{"event": "call.ended", "data": map[string]any{"direction": "outbound", "from_number": "+12025550100"}}).Want(202)
	eventually(t, "it arrives", func() bool {
		return slices.ContainsFunc(r.list(), func(g receivedRequest) bool { return g.Get("Webhook-Id") == a.Text("id") })
	})
	for _, g := range r.list() {
		if strings.Contains(g.body, `"direction":"inbound"`) {
			t.Errorf("past the filter: %s", g.body)
		}
		if g.Get("Webhook-Id") == a.Text("id") && (g.Get("X-Service-Signature") != bodySignature(secret, g.body) || !strings.Contains(g.body, `"from_number":"+12025550100"`)) {
			t.Errorf("%s", g.body)
		}
	}

}
