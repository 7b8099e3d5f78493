package webhook

import (
	"context"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// attempts ends attempts at an endpoint, n milliseconds after the start. fault is empty for a success.
type attempts struct {
	*fixture
	t     *testing.T
	d     *db.DB
	id    string
	began time.Time
}

func newAttempts(t *testing.T, d *db.DB) *attempts {
	t.Helper()
	h := newFixture(t, d, nil)
	id, _ := h.create("http://127.0.0.1:9/hook", nil)
	return &attempts{fixture: h, t: t, d: d, id: id, began: time.Now()}
}

// current returns the endpoint as it is stored.
func (a *attempts) current() *endpoint {
	a.t.Helper()
	ctx := context.Background()
	e, err := a.endpoint(ctx, a.d.Read(ctx), a.org, a.id)
	if err != nil {
		a.t.Fatal(err)
	}
	return e
}

func (a *attempts) end(e *endpoint, n int, fault string) {
	a.t.Helper()
	o := outcome{endpoint: e, delivery: &delivery{Attempts: 1},
		result: attemptResult{at: db.At(a.began.Add(time.Duration(n) * time.Millisecond)), fault: fault}}
	err := a.d.Tx(context.Background(), func(tx db.Querier) error { return a.applyOutcome(context.Background(), tx, o) })
	if err != nil {
		a.t.Fatal(err)
	}
}

// Concurrent attempts end in any order: failures with successes between them are not consecutive, even if all of them
// were observed before the first success was stored.
func TestBreaker_InterleavedSuccessesResetCount(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAttempts(t, d)
		e := a.current()
		for range 2 * maxConsecutiveFailures {
			a.countFailure(e, attemptResult{fault: "500"})
		}
		a.end(e, 0, "")
		for n := 1; n <= 2*maxConsecutiveFailures; n++ {
			a.end(e, 2*n, "500")
			a.end(e, 2*n+1, "")
		}
		if e = a.current(); e.Status != Active {
			t.Errorf("the endpoint is %s after %d failures, each with a success after it", e.Status, 2*maxConsecutiveFailures)
		}
	})
}

// TestBreaker_EarlierSuccessStoredLater stores a success after a failure that came later: the failure still counts.
func TestBreaker_EarlierSuccessStoredLater(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := newAttempts(t, d)
		e := a.current()
		a.end(e, 20, "410")
		a.end(e, 0, "")
		var failures int // read here, because the counters of a cached endpoint are old
		const q = `SELECT consecutive_failures FROM webhooks WHERE org_id = $1 AND id = $2`
		ctx := context.Background()
		if err := d.Read(ctx).QueryRow(ctx, q, a.org, a.id).Scan(&failures); err != nil || failures != 1 {
			t.Errorf("%d failures (%v), want 1", failures, err)
		}
	})
}
