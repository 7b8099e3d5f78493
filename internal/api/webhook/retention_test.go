package webhook

import (
	"context"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/event"
)

func TestDeleteBefore_OldOnly(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := newClock()
		h := newFixture(t, d, c.now)
		h.run()
		r := newReceiver(t, func(n int, w responseWriter, _ *request) {
			if n == 2 {
				w.WriteHeader(500)
			}
		})
		gone, _ := h.create(r.URL, nil)
		h.publish(event.CallMissed{CallID: "call_old"})
		eventually(t, "the old one is delivered", func() bool { return len(h.deliveries(gone)) == 1 && h.open() == 0 })
		h.api.Do(admin(h), "DELETE", "/webhooks/"+gone, nil).Want(204)
		kept, _ := h.create(r.URL, nil)
		h.publish(event.CallMissed{CallID: "call_retrying"})
		eventually(t, "it failed", func() bool { all := h.deliveries(kept); return len(all) == 1 && all[0].Attempts == 1 })
		paused, _ := h.create(r.URL, nil)
		h.api.Do(admin(h), "PATCH", "/webhooks/"+paused, map[string]any{"status": "paused"}).Want(200)
		h.publish(event.CallMissed{CallID: "call_waiting"})
		eventually(t, "it waits, and the other endpoint has it", func() bool {
			return countHeld(h.deliveries(paused)) == 1 && h.open() == 2
		})
		if n, err := h.DeleteBefore(context.Background(), start); n != 0 || err != nil {
			t.Errorf("swept %d, %v; want none before the start", n, err)
		}
		if n, err := h.DeleteBefore(context.Background(), start.Add(time.Hour)); n != 3 || err != nil {
			t.Errorf("swept %d, %v; want the old one, one to the second endpoint, and the waiting one", n, err)
		}
		if all := h.deliveries(kept); len(all) == 0 || all[0].Status != retrying {
			t.Errorf("what is still to be tried is gone: %v", all)
		}
		if len(h.deliveries(gone)) != 0 || len(h.deliveries(paused)) != 0 {
			t.Error("old deliveries are still there")
		}
		var left int
		if err := d.Read(context.Background()).QueryRow(context.Background(), `SELECT count(*) FROM webhooks WHERE id = $1`,
			gone).Scan(&left); err != nil || left != 0 {
			t.Errorf("the deleted endpoint: %d, %v", left, err)
		}
	})
}
