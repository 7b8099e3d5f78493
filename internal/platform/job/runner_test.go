package job_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/job"
)

var ctx = context.Background()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// jobQueue is a queue with a log of the finished jobs.
type jobQueue struct {
	t     testing.TB
	db    *db.DB
	queue *job.Queue

	mu   sync.Mutex // guards done
	done []string
}

func newJobQueue(t testing.TB, d *db.DB) *jobQueue {
	return &jobQueue{t: t, db: d, queue: &job.Queue{Bus: bus.New()}}
}

func (w *jobQueue) add(specs ...job.Spec) {
	w.t.Helper()
	for i := range specs {
		specs[i].Queue, specs[i].Org = "test", "org_1"
		if specs[i].Kind == "" {
			specs[i].Kind = "note"
		}
	}
	must(w.t, w.db.Tx(ctx, func(tx db.Querier) error { return w.queue.Enqueue(ctx, tx, specs...) }))
}

func (w *jobQueue) note(s string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = append(w.done, s)
}

func (w *jobQueue) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.done...)
}

func (w *jobQueue) count() int { return len(w.list()) }

// text returns the argument of a test's job.
func text(j job.Job) string {
	var s string
	_ = j.Bind(&s)
	return s
}

// runner returns a runner that logs each job's argument. Options may be changed before start.
func (w *jobQueue) runner(node string) *job.Runner {
	r := &job.Runner{DB: w.db, Queue: w.queue, Name: "test", Node: node, Log: slog.New(slog.DiscardHandler),
		Options: job.Options{Workers: 8, Timeout: 10 * time.Second}}
	r.Handle("note", func(_ context.Context, j job.Job) error { w.note(text(j)); return nil })
	return r
}

func (w *jobQueue) start(r *job.Runner) {
	w.t.Helper()
	must(w.t, r.Start(ctx))
	w.t.Cleanup(func() {
		soon, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		r.Stop(soon)
	})
}

func (w *jobQueue) eventually(claim string, holds func() bool) {
	w.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(2 * time.Minute)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			w.t.Fatalf("not seen within 30 s: %s (done %d)", claim, w.count())
		}
	}
}

// states returns the number of jobs in each state.
func (w *jobQueue) states() (ready, running, done, dead int) {
	w.t.Helper()
	rows, err := w.db.Read(ctx).Query(ctx, `SELECT state, count(*) FROM jobs GROUP BY state`)
	must(w.t, err)
	defer rows.Close()
	n := map[int]int{}
	for rows.Next() {
		var s, c int
		must(w.t, rows.Scan(&s, &c))
		n[s] = c
	}
	return n[0], n[1], n[2], n[3]
}

func TestRunner_OnceInOrderKeyOrder(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newJobQueue(t, d)
		const keys, each = 25, 20
		var mu sync.Mutex // guards the two below
		running, doubled := map[string]bool{}, 0
		for n := range 3 {
			r := w.runner(fmt.Sprintf("node_%d", n))
			r.Handle("note", func(_ context.Context, j job.Job) error {
				mu.Lock()
				if running[j.OrderKey] {
					doubled++
				}
				running[j.OrderKey] = true
				mu.Unlock()
				if rand.IntN(10) == 0 {
					<-time.After(time.Millisecond) // different durations
				}
				w.note(text(j))
				mu.Lock()
				running[j.OrderKey] = false
				mu.Unlock()
				return nil
			})
			w.start(r)
		}
		for i := range each {
			var specs []job.Spec
			for k := range keys {
				specs = append(specs, job.Spec{Lane: fmt.Sprint("lane", k%7), OrderKey: fmt.Sprint("key", k), Args: fmt.Sprintf("%d %d", k, i)})
			}
			w.add(specs...)
		}
		w.eventually("all jobs are done", func() bool { _, _, done, _ := w.states(); return done == keys*each })
		next := map[int]int{}
		for _, s := range w.list() {
			var k, i int
			_, err := fmt.Sscan(s, &k, &i)
			must(t, err)
			if next[k] != i {
				t.Fatalf("key %d: %d after %d others", k, i, next[k])
			}
			next[k]++
		}
		if w.count() != keys*each || doubled > 0 {
			t.Errorf("%d done for %d jobs, %d at the same time as another of their key", w.count(), keys*each, doubled)
		}
	})
}

func TestLane_BacklogDelaysNoOther(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newJobQueue(t, d)
		var backlog, others []job.Spec
		for range 1000 {
			backlog = append(backlog, job.Spec{Lane: "a", Args: "backlog"})
		}
		for i := range 100 {
			others = append(others, job.Spec{Lane: fmt.Sprint("lane", i), Args: "other"})
		}
		w.add(backlog...)
		w.add(others...)
		w.start(w.runner("node"))
		w.eventually("the other lanes are served", func() bool {
			n := 0
			for _, s := range w.list() {
				if s == "other" {
					n++
				}
			}
			return n == 100
		})
		before := 0
		for i, n := 0, 0; n < 100; i++ {
			if w.list()[i] == "other" {
				n++
			} else {
				before++
			}
		}
		if before > 200 {
			t.Errorf("%d jobs of the backlog were done before the last of 100 other lanes was served", before)
		}
	})
}

func TestLane_Limit(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newJobQueue(t, d)
		release := make(chan struct{})
		r := w.runner("node")
		r.Options.PerLane = 3
		r.Options.LaneLimit = func(lane string) int {
			if lane == "narrow" {
				return 1
			}
			return 100
		}
		r.Handle("block", func(_ context.Context, j job.Job) error { w.note(j.Lane); <-release; return nil })
		for range 60 { // more than fits into one claim
			w.add(job.Spec{Lane: "dead", Kind: "block"}, job.Spec{Lane: "narrow", Kind: "block"})
		}
		w.start(r)
		for range 5 {
			w.add(job.Spec{Lane: "good", Args: "good"})
		}
		w.eventually("the good lane is served", func() bool { _, _, done, _ := w.states(); return done == 5 })
		if ready, running, _, _ := w.states(); running != 4 || ready != 116 {
			t.Errorf("%d running and %d waiting, want 3 + 1 and 57 + 59", running, ready)
		}
		close(release)
		w.eventually("all is done", func() bool { _, _, done, _ := w.states(); return done == 125 })
	})
}

func TestRetry_Attempts(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newJobQueue(t, d)
		r := w.runner("node")
		free := 3
		r.Handle("fail", func(_ context.Context, j job.Job) error {
			w.note(fmt.Sprint("attempt ", j.Attempt))
			if j.Attempt == 2 && free > 0 {
				free--
				return &job.Retry{NotCounted: true, Cause: errors.New("not counted")}
			}
			return &job.Retry{After: time.Millisecond, Cause: errors.New("down")}
		})
		w.add(job.Spec{Kind: "fail", MaxAttempts: 3})
		w.start(r)
		w.eventually("the job is given up", func() bool { _, _, _, dead := w.states(); return dead == 1 })
		if got := fmt.Sprint(w.list()); got != "[attempt 1 attempt 2 attempt 2 attempt 2 attempt 2 attempt 3]" {
			t.Errorf("attempts %s", got)
		}
		var cause string
		must(t, d.Read(ctx).QueryRow(ctx, `SELECT last_error FROM jobs`).Scan(&cause))
		if cause != "again in 1ms: down" {
			t.Errorf("cause %q", cause)
		}
	})
}

func TestRunner_PanicAndUnknownKind(t *testing.T) {
	t.Parallel()
	w := newJobQueue(t, dbtest.SQLite(t))
	r := w.runner("node")
	r.Handle("panic", func(context.Context, job.Job) error { panic("in a handler") })
	r.Handle("dead", func(context.Context, job.Job) error { return fmt.Errorf("cannot: %w", job.ErrDead) })
	w.add(job.Spec{Kind: "panic", MaxAttempts: 1}, job.Spec{Kind: "nobody knows"}, job.Spec{Kind: "dead"}, job.Spec{Args: "good"})
	w.start(r)
	w.eventually("all ended", func() bool { _, _, done, dead := w.states(); return done == 1 && dead == 3 })
}

func TestOrderKey_FailingJobBlocks(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newJobQueue(t, d)
		r := w.runner("node")
		again := make(chan struct{})
		r.Handle("fail", func(_ context.Context, j job.Job) error {
			w.note(fmt.Sprint("fail ", j.Attempt))
			switch j.Attempt {
			case 1:
				return &job.Retry{After: 20 * time.Millisecond, Cause: errors.New("held")}
			case 2:
				return &job.Retry{After: time.Hour, Unordered: true, Cause: errors.New("let go")}
			}
			close(again)
			return nil
		})
		w.add(job.Spec{Kind: "fail", OrderKey: "k", UniqueKey: "the failing one"}, job.Spec{Args: "second", OrderKey: "k"},
			job.Spec{Args: "third", OrderKey: "k"}, job.Spec{Args: "free"})
		w.start(r)
		w.eventually("the later ones went on", func() bool { return w.count() == 5 })
		place := map[string]int{}
		for i, s := range w.list() {
			place[s] = i
		}
		if place["second"] < place["fail 2"] || place["third"] < place["second"] {
			t.Errorf("order %v", w.list())
		}
		must(t, d.Tx(ctx, func(tx db.Querier) error { return w.queue.Hurry(ctx, tx, "test", "org_1", "the failing one") }))
		select {
		case <-again:
		case <-time.After(2 * time.Minute):
			t.Error("a hurried job did not come back")
		}
	})
}

func TestUniqueKey_OneOpenJob(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newJobQueue(t, d)
		for range 3 {
			w.add(job.Spec{Args: "once", UniqueKey: "u"}, job.Spec{Args: "once", UniqueKey: "u"})
		}
		if ready, _, _, _ := w.states(); ready != 1 {
			t.Errorf("%d jobs, want 1", ready)
		}
		w.start(w.runner("node"))
		w.eventually("it is done", func() bool { _, _, done, _ := w.states(); return done == 1 })
		w.add(job.Spec{Args: "once", UniqueKey: "u"})
		w.eventually("it is done again", func() bool { return w.count() == 2 })
	})
}

func TestRunAt_Waits(t *testing.T) {
	t.Parallel()
	w := newJobQueue(t, dbtest.SQLite(t))
	start := time.Now()
	w.add(job.Spec{Args: "later", RunAt: start.Add(150 * time.Millisecond)}, job.Spec{Args: "never", RunAt: start.Add(time.Hour)})
	w.start(w.runner("node"))
	w.eventually("it is done", func() bool { return w.count() == 1 })
	if took := time.Since(start); took < 150*time.Millisecond || took > 5*time.Second {
		t.Errorf("done after %s, want 150 ms", took)
	}
}

func TestEnqueue_Rollback(t *testing.T) {
	t.Parallel()
	w := newJobQueue(t, dbtest.SQLite(t))
	w.start(w.runner("node"))
	_ = w.db.Tx(ctx, func(tx db.Querier) error {
		must(t, w.queue.Enqueue(ctx, tx, job.Spec{Queue: "test", Kind: "note", Args: "never"}))
		return errors.New("no")
	})
	w.add(job.Spec{Args: "good"})
	w.eventually("the good one is done", func() bool { _, _, done, _ := w.states(); return done == 1 })
	if got := fmt.Sprint(w.list()); got != "[good]" {
		t.Errorf("done %s", got)
	}
}
