package sms_test

import (
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// TestReassign_SendingCountsFromSending stores a message that waited long for its carrier, which was given it at another
// time. While the carrier may still answer, the message stays. After ten minutes its outcome is unknown.
func TestReassign_SendingCountsFromSending(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newFixture(t, d)
		id := k.sendMessage(mobile, "waited")
		for _, x := range []struct {
			since  time.Duration
			status string
		}{{time.Minute, "sending"}, {11 * time.Minute, "failed"}} {
			now := time.Now()
			k.exec(`UPDATE messages SET status = 'sending', reference = id, created_at = $2, sending_since = $3 WHERE org_id = $1`, "org_a",
				db.At(now.Add(-time.Hour)), db.At(now.Add(-x.since)))
			if err := k.ReassignWaiting(t.Context(), "org_a", "sandbox", false); err != nil {
				t.Fatal(err)
			}
			if a := k.request("GET", "/sms/"+id, nil).Want(200); a.Text("status") != x.status {
				t.Errorf("given to the carrier %s ago: %s", x.since, a.Bytes)
			}
		}
	})
}

// TestSend_StoresWhenSendingBegan sends a message by the worker and reads the stored time.
func TestSend_StoresWhenSendingBegan(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k, began := newFixture(t, d), time.Now().Add(-time.Millisecond)
		id := k.sendMessage(mobile, "now")
		k.startJobs()
		k.waitStatus(id, "delivered")
		var since db.Time
		const q = `SELECT sending_since FROM messages WHERE org_id = $1 AND id = $2`
		if err := d.Read(t.Context()).QueryRow(t.Context(), q, "org_a", id).Scan(&since); err != nil {
			t.Fatal(err)
		}
		if since.Before(began) || since.After(time.Now()) {
			t.Errorf("sending began at %s", since)
		}
	})
}
