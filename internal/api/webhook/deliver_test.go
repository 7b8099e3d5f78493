package webhook

import (
	"net/http"
	"strings"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
)

func TestDelivery_Signed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d, nil)
		h.run()
		r := newReceiver(t, nil)
		id, secret := h.create(r.URL+"/hooks", map[string]any{"headers": map[string]string{"X-Team": "blue"}})
		h.publish(event.CallMissed{CallID: "call_1", FromNumber: "+442071838750", MissedReason: "a <b> & \u2028"})
		eventually(t, "the delivery succeeded", func() bool {
			return h.get("/webhooks/"+id+"/deliveries?status=succeeded").At("data.0.id") != nil
		})
		g := r.list()[0]
		want, err := event.Encode(event.CallMissed{CallID: "call_1", FromNumber: "+442071838750", MissedReason: "a <b> & \u2028"})
		if err != nil || g.body != string(want) {
			t.Errorf("body %s, want %s (%v)", g.body, want, err)
		}
		one := h.get("/webhooks/" + id + "/deliveries/" + h.get("/webhooks/"+id+"/deliveries").Text("data.0.id"))
		for name, want := range map[string]string{
			"X-Service-Signature": bodySignature(secret, g.body), "X-Service-Event": "call.missed", "X-Service-Attempt": "1",
			"X-Service-Sequence": "1", "X-Service-Delivery": one.Text("id"), "Webhook-Id": one.Text("event_id"),
			"Content-Type": "application/json", "User-Agent": "soniq-webhooks/1.0", "X-Team": "blue",
			"X-Service-Signature-Previous": "",
		} {
			if got := g.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if one.Text("body") != g.body || one.At("attempts.0.response_status") != 200.0 || one.At("attempts.0.error") != nil {
			t.Errorf("delivery %s", one.Bytes)
		}
	})
}

func TestDelivery_FailedAttemptRetried(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t), nil)
	h.run()
	r := newReceiver(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		http.Error(w, strings.Repeat("no ", 2000), http.StatusInternalServerError)
	})
	id, _ := h.create(r.URL, nil)
	h.publish(event.CallMissed{CallID: "call_1"})
	eventually(t, "the delivery is to be tried again", func() bool {
		return h.get("/webhooks/"+id+"/deliveries?status=retrying").At("data.0.id") != nil
	})
	one := h.get("/webhooks/" + id + "/deliveries/" + h.get("/webhooks/"+id+"/deliveries").Text("data.0.id"))
	if one.Text("attempts.0.error") != "status" || one.At("attempts.0.response_status") != 500.0 || len(one.Text("attempts.0.response_body")) != 2048 {
		t.Errorf("attempt: %s", one.Bytes)
	}
	if one.At("next_attempt_at") == nil || one.At("finished_at") != nil {
		t.Errorf("delivery: %s", one.Bytes)
	}
	w := h.get("/webhooks/" + id)
	if w.At("health.consecutive_failures") != 1.0 || w.At("health.success_rate_24h") != 0.0 || w.At("health.pending") != 1.0 {
		t.Errorf("webhook: %s", w.Bytes)
	}
}
