package webhook

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op/optest"
)

func TestCreate_SecretShownOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d, nil)
		a := h.api.Do(admin(h), "POST", "/webhooks", map[string]any{"url": "https://example.com/x", "events": []string{"call.ended"}}).Want(201)
		secret, id := a.Text("secret"), a.Text("id")
		if !strings.HasPrefix(secret, "whsec_") || a.Text("secret_hint") != secretHint(secret) || a.Header.Get("Location") != "/api/v1/webhooks/"+id {
			t.Errorf("answer %s", a.Bytes)
		}
		for _, path := range []string{"/webhooks", "/webhooks/" + id} {
			if got := h.get(path); strings.Contains(string(got.Bytes), secret) || strings.Contains(string(got.Bytes), `"secret":`) {
				t.Errorf("%s shows the secret: %s", path, got.Bytes)
			}
		}
		w := h.get("/webhooks/" + id)
		for member, want := range map[string]any{"url": "https://example.com/x", "status": "active", "ordered": false, "call_ended_timing": "enriched",
			"signed_recording_urls": false, "timeout_seconds": 15.0, "health.pending": 0.0, "health.success_rate_24h": nil, "health.p95_ms": nil,
			"last_success_at": nil, "disabled_reason": nil, "description": ""} {
			if got := w.At(member); got != want {
				t.Errorf("%s: %v, want %v", member, got, want)
			}
		}
	})
}

func TestCreate_AllViolationsListed(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t), nil)
	h.api.Do(admin(h), "POST", "/webhooks", map[string]any{"url": "http://10.0.0.1/", "events": []string{"call.ended", "call.exploded"},
		"headers": map[string]string{"Host": "x", "X-Service-Signature": "x", "bad name": "x", "X-Good": "a\r\nX-Evil: b"}}).
		Want(422).Refused("validation_failed", "url blocked_address", "events[1] unknown_event", "headers.Host reserved_header",
		"headers.X-Service-Signature reserved_header", "headers.bad name invalid_header", "headers.X-Good invalid_header")
	h.api.Do(admin(h), "POST", "/webhooks", map[string]any{"url": "https://example.com", "events": []string{}, "timeout_seconds": 31, "filters": map[string]any{"direction": "up"}}).
		Want(422).Refused("validation_failed", "events invalid", "timeout_seconds invalid", "filters.direction invalid")
	h.api.Do(admin(h), "POST", "/webhooks", map[string]any{"url": "https://example.com", "events": []string{"*"}, "secret": "mine"}).
		Want(400).Refused("unknown_field", "secret unknown_field")
	id, _ := h.create("https://example.com", nil)
	h.api.Do(admin(h), "PATCH", "/webhooks/"+id, map[string]any{"url": nil, "events": []string{"x"}, "status": "disabled", "timeout_seconds": 99, "call_ended_timing": "never"}).
		Want(422).Refused("validation_failed", "url invalid_url", "events[0] unknown_event", "status invalid", "timeout_seconds out_of_range", "call_ended_timing invalid")
	for _, e := range []string{"http://example.com/", "https://user:pw@example.com/", "https://169.254.169.254/", "https://localhost.localdomain:99999/"} {
		if a := h.api.Do(admin(h), "POST", "/webhooks", map[string]any{"url": e, "events": []string{"*"}}); e != "http://example.com/" && a.Status != 422 {
			t.Errorf("%s: %d", e, a.Status)
		}
	}
}

func TestUpdate_MergePatch(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d, nil)
		id, _ := h.create("https://example.com/a", map[string]any{"headers": map[string]string{"X-A": "1", "X-B": "2"}, "description": "old"})
		tag := h.get("/webhooks/" + id).Header.Get("ETag")
		a := h.api.Do(admin(h), "PATCH", "/webhooks/"+id, map[string]any{"url": "https://example.com/b", "description": nil, "ordered": true,
			"headers": map[string]any{"X-A": nil, "X-C": "3"}, "filters": map[string]any{"direction": "inbound"}}, "If-Match: "+tag).Want(200)
		if a.Text("url") != "https://example.com/b" || a.Text("description") != "" || a.At("ordered") != true || a.Text("filters.direction") != "inbound" ||
			a.Has("headers", "X-A") || !a.Has("headers", "X-B") || a.Text("headers.X-C") == "3" || a.At("timeout_seconds") != 15.0 {
			t.Errorf("changed to %s", a.Bytes)
		}
		h.api.Do(admin(h), "PATCH", "/webhooks/"+id, map[string]any{"url": "https://evil.example/b"}).Want(422).
			Refused("validation_failed", "headers.X-B secret_required", "headers.X-C secret_required")
		h.api.Do(admin(h), "PATCH", "/webhooks/"+id, map[string]any{"ordered": false}, "If-Match: "+tag).Want(412).Refused("version_conflict")
		h.api.Do(admin(h), "DELETE", "/webhooks/"+id, nil, "If-Match: "+tag).Want(412)
	})
}

func TestWebhook_OtherOrganisationNotFound(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t), nil)
	h.run()
	r := newReceiver(t, nil)
	id, _ := h.create(r.URL, nil)
	d, _ := h.firstAttempt(id)
	other := optest.Admin(newOrg(t, h.cfg.DB))
	for _, x := range [][2]string{{"GET", ""}, {"PATCH", ""}, {"DELETE", ""}, {"POST", "/rotate-secret"}, {"POST", "/test"}, {"GET", "/deliveries"},
		{"GET", "/deliveries/" + d.ID}, {"POST", "/deliveries/" + d.ID + "/replay"}} {
		var body any
		if x[0] != "GET" && x[0] != "DELETE" {
			body = map[string]any{}
		}
		h.api.Do(other, x[0], "/webhooks/"+id+x[1], body).Want(404).Refused("not_found")
	}
	second, _ := h.create(r.URL, nil)
	h.api.Do(admin(h), "GET", "/webhooks/"+second+"/deliveries/"+d.ID, nil).Want(404)
}

func TestDelete_NoFurtherDeliveries(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d, nil)
		h.run()
		r := newReceiver(t, status(500))
		id, _ := h.create(r.URL, nil)
		one, _ := h.firstAttempt(id)
		h.api.Do(admin(h), "DELETE", "/webhooks/"+id, nil).Want(204)
		h.api.Do(admin(h), "GET", "/webhooks/"+id, nil).Want(404)
		h.publish(event.CallMissed{CallID: "call_2"})
		eventually(t, "the event was handed on", func() bool { return h.unnumbered() == 0 })
		all := h.deliveries(id)
		if len(all) != 1 || all[0].ID != one.ID || all[0].Status != discarded || all[0].FinishedAt.IsZero() {
			t.Errorf("%d deliveries, first %+v", len(all), all[0])
		}
	})
}

func TestPause_DeliveriesHeld(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d, nil)
		h.run()
		r := newReceiver(t, nil)
		id, _ := h.create(r.URL, nil)
		h.api.Do(admin(h), "PATCH", "/webhooks/"+id, map[string]any{"status": "paused"}).Want(200)
		h.publish(numberedEvents("call_1", 4)...)
		eventually(t, "the events wait", func() bool { return countHeld(h.deliveries(id)) == 4 })
		if w := h.get("/webhooks/" + id); w.At("health.pending") != 4.0 || w.At("health.oldest_pending_at") == nil || w.Text("status") != "paused" {
			t.Errorf("webhook %s", w.Bytes)
		}
		h.api.Do(admin(h), "PATCH", "/webhooks/"+id, map[string]any{"status": "active"}).Want(200)
		h.publish(numberedEvents("call_1", 4)...)
		eventually(t, "all are delivered", func() bool { return len(h.deliveries(id)) == 8 && h.open() == 0 })
		checkOrder(t, r.list())
		if r.count() != 8 {
			t.Errorf("%d requests, want 8", r.count())
		}
	})
}

func TestRotate_BothSecretsSign(t *testing.T) {
	t.Parallel()
	c := newClock()
	h := newFixture(t, dbtest.SQLite(t), c.now)
	h.run()
	r := newReceiver(t, nil)
	id, old := h.create(r.URL, nil)
	a := h.api.Do(admin(h), "POST", "/webhooks/"+id+"/rotate-secret", map[string]any{"grace_seconds": 3600}).Want(200)
	fresh := a.Text("secret")
	if fresh == old || a.Text("previous_valid_until") != db.At(start.Add(time.Hour)).String() || h.get("/webhooks/"+id).Text("secret_hint") != secretHint(fresh) {
		t.Fatalf("rotated: %s", a.Bytes)
	}
	h.publish(event.CallMissed{CallID: "call_1"})
	eventually(t, "it arrives", func() bool { return r.count() == 1 })
	g := r.list()[0]
	signatures := strings.Fields(g.Get("Webhook-Signature"))
	if g.Get("X-Service-Signature") != bodySignature(fresh, g.body) || g.Get("X-Service-Signature-Previous") != bodySignature(old, g.body) || len(signatures) != 2 ||
		signatures[0] != standardSignature(fresh, g.Get("Webhook-Id"), start.Unix(), g.body) || signatures[1] != standardSignature(old, g.Get("Webhook-Id"), start.Unix(), g.body) {
		t.Errorf("headers %v", g.Header)
	}
	c.set(start.Add(time.Hour))
	h.publish(event.CallMissed{CallID: "call_2"})
	h.wake()
	eventually(t, "it arrives", func() bool { return r.count() == 2 })
	if g := r.list()[1]; g.Get("X-Service-Signature") != bodySignature(fresh, g.body) || g.Get("X-Service-Signature-Previous") != "" || len(strings.Fields(g.Get("Webhook-Signature"))) != 1 {
		t.Errorf("after the hour: %v", g.Header)
	}
	if a := h.api.Do(admin(h), "POST", "/webhooks/"+id+"/rotate-secret", map[string]any{"grace_seconds": 0}).Want(200); a.At("previous_valid_until") != nil {
		t.Errorf("without grace: %s", a.Bytes)
	}
}

func TestTestEvent_SentAtOnce(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t), nil)
	r := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n > 1 {
			w.WriteHeader(503)
		}
	})
	id, secret := h.create(r.URL, nil)
	a := h.api.Do(admin(h), "POST", "/webhooks/"+id+"/test", map[string]any{}).Want(200)
	g := r.list()[0]
	if a.Text("status") != "succeeded" || a.Text("event") != "call.ended" || a.Text("body") != g.body || a.At("attempts.0.response_status") != 200.0 ||
		g.Get("X-Service-Signature") != bodySignature(secret, g.body) || !strings.HasPrefix(g.body, `{"event":"call.ended","data":{"call_id":"call_`) {
		t.Errorf("answer %s", a.Bytes)
	}
	a = h.api.Do(admin(h), "POST", "/webhooks/"+id+"/test", map[string]any{"event": "user.created"}).Want(200)
	if a.Text("status") != "exhausted" || a.Text("event") != "user.created" || a.At("attempts.0.response_status") != 503.0 {
		t.Errorf("answer %s", a.Bytes)
	}
	h.api.Do(admin(h), "POST", "/webhooks/"+id+"/test", map[string]any{"event": "nothing"}).Want(422)
	h.api.Do(admin(h), "POST", "/webhooks/"+id+"/test", nil).Want(200)
	h.api.Do(admin(h), "POST", "/webhooks/"+id+"/rotate-secret", nil).Want(200)
	if w := h.get("/webhooks/" + id); w.At("health.consecutive_failures") != 0.0 {
		t.Errorf("a test counts as a failure: %s", w.Bytes)
	}
}

func TestReplay_NewDeliverySameEvent(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d, nil)
		h.run()
		r := newReceiver(t, nil)
		id, _ := h.create(r.URL, nil)
		first, _ := h.firstAttempt(id)
		a := h.api.Do(admin(h), "POST", "/webhooks/"+id+"/deliveries/"+first.ID+"/replay", map[string]any{}).Want(202)
		if a.Text("replay_of") != first.ID || a.Text("event_id") != first.EventID || a.Text("id") == first.ID || a.Text("body") != first.Body {
			t.Errorf("answer %s", a.Bytes)
		}
		eventually(t, "it arrives again", func() bool { return r.count() == 2 && h.open() == 0 })
		all := r.list()
		if all[0].body != all[1].body || all[0].Get("Webhook-Id") != all[1].Get("Webhook-Id") || all[0].Get("X-Service-Delivery") == all[1].Get("X-Service-Delivery") {
			t.Errorf("first %v, again %v", all[0].Header, all[1].Header)
		}
	})
}

func TestDeliveries_Filters(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d, nil)
		h.run()
		r := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 1 {
				w.Header().Set("Retry-After", "600") // no second attempt during the test
				w.WriteHeader(418)
			}
		})
		id, _ := h.create(r.URL, nil)
		h.publish(event.CallMissed{CallID: "call_1"})
		eventually(t, "one is to be tried again", func() bool { return h.get("/webhooks/"+id+"/deliveries?status=retrying").At("data.0") != nil })
		h.publish(event.CallMissed{CallID: "call_2"}, event.UserCreated{UserID: "usr_1"}, event.CallRecording{CallID: "call_2"})
		eventually(t, "the others are delivered", func() bool { return len(h.deliveries(id)) == 4 && h.open() == 1 })
		for query, want := range map[string]int{"": 4, "status=succeeded": 3, "status=succeeded,retrying": 4, "status=delivering": 0, "event=call.missed": 2,
			"event=call.missed,user.created": 3, "call_id=call_2": 2, "response_status=418": 1, "response_status=200": 3,
			"since=2020-01-01": 4, "until=2020-01-01": 0, "limit=1": 1, "status=exhausted": 0} {
			list, _ := h.get("/webhooks/" + id + "/deliveries?" + query).At("data").([]any)
			if len(list) != want {
				t.Errorf("%s: %d, want %d", query, len(list), want)
			}
		}
		told, err := h.TimelineOfCall(t.Context(), h.org, "call_1")
		if err != nil || len(told) != 1 || told[0].Event != "call.missed" || told[0].WebhookID != id || told[0].Attempt != 1 ||
			told[0].Status != "retrying" || told[0].ResponseStatus != 418 || told[0].Error != "status" {
			t.Errorf("told of the first call: %+v %v", told, err)
		}
		if told, err = h.TimelineOfCall(t.Context(), h.org, "call_2"); err != nil || len(told) != 2 || told[1].At.Before(told[0].At.Time) ||
			told[0].Status != "succeeded" || told[0].ResponseStatus != 200 || told[0].Error != "" {
			t.Errorf("told of the second call: %+v %v", told, err)
		}
		if told, err = h.TimelineOfCall(t.Context(), db.NewID("org"), "call_2"); err != nil || len(told) != 0 {
			t.Errorf("another organisation is told %+v %v", told, err)
		}
		seen := map[string]bool{}
		for path := "/webhooks/" + id + "/deliveries?limit=3"; ; {
			a := h.get(path)
			for i := range 3 {
				if x := a.Text(fmt.Sprintf("data.%d.id", i)); x != "" {
					seen[x] = true
				}
			}
			if a.At("has_more") != true {
				break
			}
			path = "/webhooks/" + id + "/deliveries?limit=3&cursor=" + a.Text("next_cursor")
		}
		if len(seen) != 4 {
			t.Errorf("%d deliveries on the pages, want 4", len(seen))
		}
	})
}
