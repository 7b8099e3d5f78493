package job_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/job"
)

// crash sets the jobs to the state that a crashed node leaves.
func (w *jobQueue) crash(worker string, lease time.Time) {
	w.t.Helper()
	must(w.t, w.db.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, `UPDATE jobs SET state = 1, attempt = 1, worker = $1, lease_until = $2`, worker, db.At(lease))
		return err
	}))
}

func TestStart_RecoversJobsOfDeadNode(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for name, x := range map[string]struct {
			worker string
			lease  time.Time
			done   bool
		}{
			"same node, at once":              {"node", time.Now().Add(time.Hour), true},
			"other node, lease has run out":   {"other", time.Now().Add(-time.Second), true},
			"other node, lease still running": {"other", time.Now().Add(time.Hour), false},
		} {
			w := newJobQueue(t, d)
			must(t, d.Tx(ctx, func(tx db.Querier) error { _, err := tx.Exec(ctx, `DELETE FROM jobs`); return err }))
			w.add(job.Spec{Args: name})
			w.crash(x.worker, x.lease)
			r := w.runner("node")
			must(t, r.Start(ctx))
			w.add(job.Spec{Args: "marker"})
			want := 1
			if x.done {
				want = 2
			}
			w.eventually(name, func() bool { _, _, done, _ := w.states(); return done == want })
			r.Stop(ctx)
			if got := w.count(); got != want {
				t.Errorf("%s: %d done, want %d", name, got, want)
			}
		}
	})
}

func TestLease_LostWorkerWritesNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newJobQueue(t, d)
		r := w.runner("slow")
		begun, finish := make(chan struct{}), make(chan error)
		r.Handle("slow", func(context.Context, job.Job) error { close(begun); return <-finish })
		w.add(job.Spec{Kind: "slow"})
		must(t, r.Start(ctx))
		<-begun
		must(t, d.Tx(ctx, func(tx db.Querier) error {
			_, err := tx.Exec(ctx, `UPDATE jobs SET worker = 'other', attempt = 2`)
			return err
		}))
		finish <- nil
		r.Stop(ctx)
		if _, running, done, _ := w.states(); running != 1 || done != 0 {
			t.Errorf("%d running, %d done; want the other's to be left alone", running, done)
		}
	})
}

func TestReport_WrittenWithJobEnd(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newJobQueue(t, d)
		must(t, d.Tx(ctx, func(tx db.Querier) error {
			_, err := tx.Exec(ctx, `CREATE TABLE reports (id TEXT PRIMARY KEY)`)
			return err
		}))
		var fails atomic.Int64
		r := w.runner("node")
		r.Options.Workers = 64
		r.Options.Record = func(ctx context.Context, tx db.Querier, reports []any) error {
			for _, v := range reports {
				if _, err := tx.Exec(ctx, `INSERT INTO reports (id) VALUES ($1)`, v); err != nil {
					return err
				}
				if v == "7" && fails.Add(1) < 3 {
					return errors.New("this report cannot be written yet")
				}
			}
			return nil
		}
		r.Handle("report", func(ctx context.Context, j job.Job) error {
			job.Report(ctx, text(j))
			job.AtEnd(ctx, func(ctx context.Context, tx db.Querier) error {
				_, err := tx.Exec(ctx, `INSERT INTO reports (id) VALUES ($1)`, "end of "+text(j))
				return err
			})
			return nil
		})
		var specs []job.Spec
		for i := range 100 {
			specs = append(specs, job.Spec{Kind: "report", Args: fmt.Sprint(i)})
		}
		w.add(specs...)
		w.start(r)
		w.eventually("all but one are done", func() bool { _, _, done, _ := w.states(); return done >= 99 })
		w.eventually("the one is done later", func() bool { _, _, done, _ := w.states(); return done == 100 })
		var n int
		must(t, d.Read(ctx).QueryRow(ctx, `SELECT count(*) FROM reports`).Scan(&n))
		if n != 200 {
			t.Errorf("%d reports, want 200", n)
		}
	})
}

func TestStop_WaitsThenCancels(t *testing.T) {
	t.Parallel()
	w := newJobQueue(t, dbtest.SQLite(t))
	r := w.runner("node")
	begun, finish := make(chan struct{}, 2), make(chan struct{})
	r.Handle("quick", func(context.Context, job.Job) error { begun <- struct{}{}; <-finish; return nil })
	r.Handle("endless", func(ctx context.Context, _ job.Job) error { begun <- struct{}{}; <-ctx.Done(); return ctx.Err() })
	w.add(job.Spec{Kind: "quick"}, job.Spec{Kind: "endless", MaxAttempts: 1})
	must(t, r.Start(ctx))
	<-begun
	<-begun
	limit, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() { r.Stop(limit); close(stopped) }()
	close(finish)
	w.eventually("the quick one is done", func() bool { _, _, done, _ := w.states(); return done == 1 })
	cancel()
	<-stopped
	if ready, running, done, dead := w.states(); ready != 1 || running+dead != 0 || done != 1 {
		t.Errorf("ready %d, running %d, done %d, dead %d; want the cancelled one ready again, uncounted", ready, running, done, dead)
	}
}

func TestSweep_EndedBefore(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newJobQueue(t, d)
		var specs []job.Spec
		for range 700 {
			specs = append(specs, job.Spec{Args: "x"})
		}
		w.add(specs...)
		must(t, d.Tx(ctx, func(tx db.Querier) error {
			_, err := tx.Exec(ctx, `UPDATE jobs SET state = 2, finished_at = $1`, db.At(time.Now().Add(-time.Hour)))
			return err
		}))
		w.add(job.Spec{Args: "open"})
		if gone, err := job.Sweep(ctx, d, time.Now().Add(-2*time.Hour)); gone != 0 || err != nil {
			t.Errorf("swept %d, %v; want none", gone, err)
		}
		if gone, err := job.Sweep(ctx, d, time.Now()); gone != 700 || err != nil {
			t.Errorf("swept %d, %v; want 700", gone, err)
		}
		if ready, _, done, _ := w.states(); ready != 1 || done != 0 {
			t.Errorf("%d ready, %d done left", ready, done)
		}
	})
}
