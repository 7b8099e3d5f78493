package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"soniq/internal/platform/db"
)

// A work is a job this node does at the moment.
type work struct {
	org       string
	cancel    context.CancelFunc
	abandoned bool
}

// abandonedRest is how long an abandoned job is left alone: it is to be cleared away, and not to be begun again before that.
const abandonedRest = time.Second

// errAbandoned is why a job that was abandoned did not come to its end.
var errAbandoned = errors.New("abandoned: what it works on is being removed")

// Abandon cancels the jobs of an organisation that run here. What they were to write at their end is dropped, and they are
// ready again after a moment: Clear takes them away before. It does not wait.
func (r *Runner) Abandon(org string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.works {
		if w.org == org {
			w.abandoned = true
			w.cancel()
		}
	}
}

// started keeps a job that begins within reach of Abandon; ended lets go of it and reports whether it was abandoned.
func (r *Runner) started(e *end, cancel context.CancelFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.works == nil {
		r.works = map[*end]*work{}
	}
	r.works[e] = &work{org: e.job.Org, cancel: cancel}
}

func (r *Runner) ended(e *end) (abandoned bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	abandoned = r.works[e].abandoned
	delete(r.works, e)
	return abandoned
}

// Clear removes the jobs of an organisation that nobody runs, but those of the queues to keep, and returns how many of the
// others are left: they run on some node, or did until this moment.
func Clear(ctx context.Context, tx db.Querier, org string, keep ...string) (left int, err error) {
	f := db.Where(`SELECT count(*) FROM jobs WHERE org_id = $1`, org)
	const gone = `DELETE FROM jobs WHERE org_id = $1 AND state <> 1`
	text, args := but(db.Where(gone, org), keep).SQL()
	if _, err := tx.Exec(ctx, text, args...); err != nil {
		return 0, fmt.Errorf("clear jobs: %w", err)
	}
	text, args = but(f, keep).SQL()
	if err := tx.QueryRow(ctx, text, args...).Scan(&left); err != nil {
		return 0, fmt.Errorf("count jobs that are left: %w", err)
	}
	return left, nil
}

func but(f *db.Filter, queues []string) *db.Filter {
	for _, q := range queues {
		f = f.And("queue <> ?", q)
	}
	return f
}
