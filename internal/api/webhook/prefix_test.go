package webhook

import (
	"context"
	"net/http"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
)

// An organisation chooses the prefix of our own headers: of deliveries, of signed requests, and in the catalogue. An own
// header that the prefix makes ours is not sent, and cannot be set.
func TestHeaderPrefix_OfTheOrganization(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d, nil)
		h.run()
		r := newReceiver(t, nil)
		_, secret := h.create(r.URL, map[string]any{"headers": map[string]string{"X-Acme-Event": "mine", "X-Other": "mine"}})
		h.api.Do(admin(h), "PATCH", "/organization", `{"webhook_header_prefix":"x-acme"}`).Want(200)
		if got := h.get("/webhooks/events").Text("header_prefix"); got != "x-acme" {
			t.Errorf("the catalogue has the prefix %q", got)
		}
		h.publish(event.CallMissed{CallID: "call_1"})
		eventually(t, "it arrives", func() bool { return r.count() == 1 })
		g := r.list()[0]
		if g.Get("X-Acme-Signature") != bodySignature(secret, g.body) || len(g.Header.Values("X-Acme-Event")) != 1 ||
			g.Get("X-Acme-Event") != "call.missed" || g.Get("X-Other") != "mine" || g.Get("X-Service-Signature") != "" {
			t.Errorf("headers %v", g.Header)
		}
		request, err := http.NewRequest("POST", r.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.SignRequest(context.Background(), h.org, request, "{}"); err != nil {
			t.Fatal(err)
		}
		if got := request.Header["x-acme-signature"]; len(got) != 1 || got[0] != bodySignature(secret, "{}") {
			t.Errorf("headers of a signed request %v", request.Header)
		}
		h.api.Do(admin(h), "POST", "/webhooks", map[string]any{"url": r.URL, "events": []string{"*"},
			"headers": map[string]string{"X-Acme-Signature": "mine"}}).Want(422).Refused("validation_failed",
			"headers.X-Acme-Signature reserved_header")
	})
}
