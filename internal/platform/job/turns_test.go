package job_test

import (
	"context"
	"fmt"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/job"
)

// addOf enqueues jobs of an organisation.
func (w *jobQueue) addOf(org string, specs ...job.Spec) {
	w.t.Helper()
	for i := range specs {
		specs[i].Queue, specs[i].Org, specs[i].Kind, specs[i].Args = "test", org, "note", org
	}
	must(w.t, w.db.Tx(ctx, func(tx db.Querier) error { return w.queue.Enqueue(ctx, tx, specs...) }))
}

// before returns the number of jobs of an organisation that were done before the last one of another.
func (w *jobQueue) before(org, last string) (n int) {
	all := w.list()
	end := 0
	for i, s := range all {
		if s == last {
			end = i
		}
	}
	for _, s := range all[:end] {
		if s == org {
			n++
		}
	}
	return n
}

// Neither the number of an organisation's jobs nor that of its lanes delays the jobs of another.
func TestTurns_OrganisationDelaysNoOther(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newJobQueue(t, d)
		for batch := range 5 {
			jobs := make([]job.Spec, 1000)
			for i := range jobs {
				jobs[i].Lane = fmt.Sprint("lane", batch*100+i%100)
			}
			w.addOf("org_many", jobs...)
		}
		w.addOf("org_few", make([]job.Spec, 30)...)
		w.addOf("org_other", make([]job.Spec, 30)...)
		w.start(w.runner("node"))
		w.eventually("the few jobs are done", func() bool {
			n := 0
			for _, s := range w.list() {
				if s != "org_many" {
					n++
				}
			}
			return n == 60
		})
		if n := w.before("org_many", "org_few"); n > 200 {
			t.Errorf("%d jobs with 500 lanes were done before 30 jobs of another organisation", n)
		}
	})
}

// Jobs that last occupy at most three quarters of the workers, whatever the number of the organisation's lanes.
func TestTurns_OrganisationLeavesWorkers(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newJobQueue(t, d)
		release, running := make(chan struct{}), make(chan struct{}, 100)
		r := w.runner("node")
		r.Handle("note", func(_ context.Context, j job.Job) error {
			if text(j) == "org_slow" {
				running <- struct{}{}
				<-release
			}
			w.note(text(j))
			return nil
		})
		slow := make([]job.Spec, 100)
		for i := range slow {
			slow[i].Lane = fmt.Sprint("lane", i)
		}
		w.addOf("org_slow", slow...)
		w.start(r)
		for range 6 {
			<-running
		}
		w.addOf("org_quick", make([]job.Spec, 100)...)
		w.eventually("the quick jobs are done", func() bool { return w.count() == 100 })
		if n := len(running); n != 0 {
			t.Errorf("%d slow jobs run", 6+n)
		}
		close(release)
		w.eventually("all is done", func() bool { return w.count() == 200 })
	})
}
