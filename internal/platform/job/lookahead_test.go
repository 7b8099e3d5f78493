package job_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/job"
)

// TestLookahead_JobsOfOtherNodes proves that an idle node runs jobs that another node wrote, although it receives no wake-up for them: jobs
// that are due, jobs that become due later, and jobs with an expired lease.
func TestLookahead_JobsOfOtherNodes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newJobQueue(t, d)
		for _, name := range []string{"test", "other", "third"} {
			r := &job.Runner{DB: d, Queue: w.queue, Name: name, Node: "here", Log: slog.New(slog.DiscardHandler),
				Options: job.Options{Workers: 8, Timeout: 10 * time.Second}}
			r.Handle("note", func(_ context.Context, j job.Job) error { w.note(text(j)); return nil })
			w.start(r)
		}
		away := &job.Queue{Bus: bus.New()} // of another process
		begun := time.Now()
		later := begun.Add(1500 * time.Millisecond)
		must(t, d.Tx(ctx, func(tx db.Querier) error {
			return away.Enqueue(ctx, tx, job.Spec{Org: "org_1", Queue: "test", Kind: "note", Args: "due"},
				job.Spec{Org: "org_1", Queue: "third", Kind: "note", Args: "later", RunAt: later},
				job.Spec{Org: "org_1", Queue: "unknown", Kind: "note", Args: "of no queue here"})
		}))
		w.eventually("both jobs ran", func() bool { return w.count() == 2 })
		if early := time.Until(later); early > 0 {
			t.Errorf("the later job ran %v early", early)
		}
		must(t, d.Tx(ctx, func(tx db.Querier) error {
			if err := away.Enqueue(ctx, tx, job.Spec{Org: "org_1", Queue: "other", Kind: "note", Args: "expired"}); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `UPDATE jobs SET state = 1, attempt = 1, worker = 'gone', lease_until = $1 WHERE queue = 'other'`, db.At(time.Now()))
			return err
		}))
		w.eventually("the job of the lost node ran", func() bool { return w.count() == 3 })
	})
}

// TestLookahead_ClockJumps proves that a job runs if the clock jumps over its time, as after a suspension of the machine. If the clock is
// set back, a job waits until its time comes again, and no longer.
//
// https://github.com/node-schedule/node-schedule/issues/632
// https://github.com/agronholm/apscheduler/issues/351
// https://github.com/mbenkmann/limux-gosa-test/issues/20
func TestLookahead_ClockJumps(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64 // of the machine's clock
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	w := newJobQueue(t, dbtest.SQLite(t))
	w.queue.Clock = clock.Func(now)
	w.start(w.runner("here"))
	w.add(job.Spec{Args: "after the sleep", RunAt: now().Add(2 * time.Hour)}, job.Spec{Args: "much later", RunAt: now().Add(4 * time.Hour)})
	ahead.Store(int64(3 * time.Hour))
	w.eventually("the job that became due during the sleep ran", func() bool { return w.count() == 1 })
	const wait = 300 * time.Millisecond
	for ran, paused := 1, true; paused; ran++ {
		at, added := now().Add(wait), time.Now()
		w.add(job.Spec{Args: "soon", RunAt: at})
		ahead.Add(-int64(time.Second))
		paused = time.Since(added) > wait-50*time.Millisecond // the job may have run before the clock was set back: once more
		w.eventually("the job ran after the clock was set back", func() bool { return w.count() > ran })
		if early := at.Sub(now()); !paused && early > 50*time.Millisecond {
			t.Errorf("the job ran %v early", early)
		}
	}
}
