package webhook

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
)

// Words of a deleted transcript are neither in deliveries nor in the responses of receivers that repeat them. A delivery that waits is sent
// without them.
// https://github.com/keygen-sh/keygen-api/issues/207
func TestRemoveContent_DeliveriesAndResponses(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d, nil)
		h.run()
		r := newReceiver(t, nil)
		r.answer = func(n int, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, r.list()[n-1].body) }
		sent, _ := h.create(r.URL, nil)
		paused, _ := h.create(r.URL, nil)
		h.api.Do(admin(h), "PATCH", "/webhooks/"+paused, map[string]any{"status": "paused"}).Want(200)
		words := "my secret number"
		h.publish(event.CallTranscription{CallID: "call_1", Status: "completed", Text: &words, Topics: []string{"secret"}},
			event.CallTranscription{CallID: "call_2", Status: "completed", Text: &words})
		eventually(t, "both are delivered, and two wait", func() bool { return h.open() == 2 && countHeld(h.deliveries(paused)) == 2 })
		err := d.Tx(context.Background(), func(tx db.Querier) error {
			return h.RemoveContent(context.Background(), tx, h.org, "call_1", event.Words)
		})
		if err != nil {
			t.Fatal(err)
		}
		h.api.Do(admin(h), "PATCH", "/webhooks/"+paused, map[string]any{"status": "active"}).Want(200)
		eventually(t, "all are delivered", func() bool { return h.open() == 0 })
		for _, id := range []string{sent, paused} {
			for _, x := range h.deliveries(id) {
				text := string(h.get("/webhooks/" + id + "/deliveries/" + x.ID).Bytes)
				if has, want := strings.Contains(text, "secret"), !strings.Contains(text, "call_1"); has != want {
					t.Errorf("delivery of %s has the words %v, want %v: %s", id, has, want, text)
				}
			}
		}
		late := 0
		for _, q := range r.list() {
			if text := q.body; strings.Contains(text, "call_1") && !strings.Contains(text, "secret") {
				late++
			}
		}
		if late != 1 {
			t.Errorf("%d deliveries of the call were sent without its words, want the one that waited", late)
		}
	})
}
