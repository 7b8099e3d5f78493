package webhook

import (
	"context"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// Concurrent attempts end in any order: failures with successes between them are not consecutive, even if all of them
// were observed before the first success was stored.
func TestBreaker_InterleavedSuccessesResetCount(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := context.Background()
		h := newFixture(t, d, nil)
		id, _ := h.create("http://127.0.0.1:9/hook", nil)
		e, err := h.endpoint(ctx, d.Read(ctx), h.org, id)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		end := func(n int, fault string) {
			t.Helper()
			o := outcome{endpoint: e, delivery: &delivery{Attempts: 1},
				result: attemptResult{at: db.At(began.Add(time.Duration(n) * time.Millisecond)), fault: fault}}
			if err := d.Tx(ctx, func(tx db.Querier) error { return h.applyOutcome(ctx, tx, o) }); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 * maxConsecutiveFailures {
			h.countFailure(e, attemptResult{fault: "500"})
		}
		end(0, "")
		for n := 1; n <= 2*maxConsecutiveFailures; n++ {
			end(2*n, "500")
			end(2*n+1, "")
		}
		if e, err = h.endpoint(ctx, d.Read(ctx), h.org, id); err != nil || e.Status != Active {
			t.Errorf("the endpoint is %s after %d failures, each with a success after it (%v)", e.Status, 2*maxConsecutiveFailures, err)
		}
	})
}

// TestBreaker_EarlierSuccessStoredLater stores a success behind a failure that came after it: the failure still counts.
func TestBreaker_EarlierSuccessStoredLater(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := context.Background()
		h := newFixture(t, d, nil)
		id, _ := h.create("http://127.0.0.1:9/hook", nil)
		e, err := h.endpoint(ctx, d.Read(ctx), h.org, id)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for _, r := range []attemptResult{{at: db.At(began.Add(20 * time.Millisecond)), fault: "410"}, {at: db.At(began)}} {
			o := outcome{endpoint: e, delivery: &delivery{Attempts: 1}, result: r}
			if err := d.Tx(ctx, func(tx db.Querier) error { return h.applyOutcome(ctx, tx, o) }); err != nil {
				t.Fatal(err)
			}
		}
		var failures int
		const q = `SELECT consecutive_failures FROM webhooks WHERE org_id = $1 AND id = $2`
		if err := d.Read(ctx).QueryRow(ctx, q, h.org, id).Scan(&failures); err != nil || failures != 1 {
			t.Errorf("%d failures (%v), want 1", failures, err)
		}
	})
}
