package job_test

import (
	"context"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/job"
)

// A claim whose response was lost leaves jobs assigned to a node that does not run them.
func TestDisown_LostClaim(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newJobQueue(t, d)
		w.add(job.Spec{Args: "lost", RunAt: time.Now().Add(time.Hour)}, job.Spec{Kind: "slow", Args: "running"})
		r := w.runner("node_1")
		started, release := make(chan struct{}), make(chan struct{})
		r.Handle("slow", func(_ context.Context, j job.Job) error {
			close(started)
			<-release
			w.note(text(j))
			return nil
		})
		must(t, r.Start(ctx))
		defer r.Stop(ctx)
		<-started
		must(t, d.Tx(ctx, func(tx db.Querier) error { // the committed claim
			_, err := tx.Exec(ctx, `UPDATE jobs SET state = 1, attempt = 1, worker = $1, lease_until = $2, run_at = $3 WHERE state = 0`,
				"node_1", db.At(time.Now().Add(time.Hour)), db.At(time.Now()))
			return err
		}))
		must(t, r.Disown(ctx))
		deadline := time.After(2 * time.Minute)
		for w.count() == 0 {
			select {
			case <-deadline:
				t.Fatal("the job was not given back")
			case <-time.After(5 * time.Millisecond):
			}
		}
		close(release)
		for w.count() < 2 {
			select {
			case <-deadline:
				t.Fatalf("done: %v", w.list())
			case <-time.After(5 * time.Millisecond):
			}
		}
		if got := w.list(); got[0] != "lost" || got[1] != "running" {
			t.Errorf("done %v, want the lost one and then the running one, once each", got)
		}
	})
}
