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
func TestFailuresWithSuccessesBetweenThemAreNotInARow(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := context.Background()
		h := newHouse(t, d, nil)
		id, _ := h.create("http://127.0.0.1:9/hook", nil)
		e, err := h.endpoint(ctx, d.Read(ctx), h.org, id)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		end := func(n int, fault string) {
			t.Helper()
			o := outcome{e: e, d: &delivery{Attempts: 1}, r: result{at: db.At(began.Add(time.Duration(n) * time.Millisecond)), fault: fault}}
			if err := d.Tx(ctx, func(tx db.Querier) error { return h.judged(ctx, tx, o) }); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 * failuresAllowed {
			h.noticed(e, result{fault: "500"})
		}
		end(0, "")
		for n := 1; n <= 2*failuresAllowed; n++ {
			end(2*n, "500")
			end(2*n+1, "")
		}
		if e, err = h.endpoint(ctx, d.Read(ctx), h.org, id); err != nil || e.Status != Active {
			t.Errorf("the endpoint is %s after %d failures, each with a success after it (%v)", e.Status, 2*failuresAllowed, err)
		}
	})
}
