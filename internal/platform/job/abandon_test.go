package job_test

import (
	"context"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/job"
)

func TestAbandon_WritesNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newJobQueue(t, d)
		r := w.runner("a")
		began := make(chan struct{}, 8)
		r.Handle("slow", func(ctx context.Context, j job.Job) error {
			job.AtEnd(ctx, func(context.Context, db.Querier) error { w.note("written"); return nil })
			select {
			case began <- struct{}{}:
			default: // started again before it was cleared
			}
			<-ctx.Done()
			return nil // it finished too late
		})
		w.start(r)
		w.add(job.Spec{Kind: "slow"}, job.Spec{Args: "kept"})
		<-began
		w.eventually("the other job is done", func() bool { return w.count() == 1 })
		clear := func() (running int) {
			must(t, d.Tx(ctx, func(tx db.Querier) (err error) {
				running, err = job.Clear(ctx, tx, "org_1")
				return err
			}))
			return running
		}
		w.eventually("one job runs", func() bool { return clear() == 1 })
		r.Abandon("org_2")
		if n := clear(); n != 1 {
			t.Errorf("%d jobs run after those of another organisation were abandoned", n)
		}
		r.Abandon("org_1")
		w.eventually("nothing runs", func() bool { r.Abandon("org_1"); return clear() == 0 })
		ready, running, done, dead := w.states()
		if ready+running+done+dead != 0 || w.count() != 1 {
			t.Errorf("%d %d %d %d jobs are left, done were %v", ready, running, done, dead, w.list())
		}
	})
}
