package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"soniq/internal/platform/db"
)

// work is a job that this node runs.
type work struct {
	org       string
	cancel    context.CancelFunc
	abandoned bool
}

// abandonedRest is the delay before an abandoned job is ready again. It gives Clear the time to delete the job.
const abandonedRest = time.Second

// errAbandoned is the cause of the retry of an abandoned job.
var errAbandoned = errors.New("abandoned: what it works on is being removed")

// Abandon cancels the running jobs of an organisation on this node. Their AtEnd functions and reports are dropped.
// They become ready again after a moment, unless Clear deletes them first. It does not wait.
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

// started registers a running job for Abandon. ended removes it and reports whether it was abandoned.
func (r *Runner) started(e *jobEnd, cancel context.CancelFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.works == nil {
		r.works = map[*jobEnd]*work{}
	}
	r.works[e] = &work{org: e.job.Org, cancel: cancel}
}

func (r *Runner) ended(e *jobEnd) (abandoned bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	abandoned = r.works[e].abandoned
	delete(r.works, e)
	return abandoned
}

// Clear deletes the jobs of an organisation that are not running, except in the queues in keep. It returns the number
// of the others that are left: they still run on some node.
func Clear(ctx context.Context, tx db.Querier, org string, keep ...string) (left int, err error) {
	f := db.Where(`SELECT count(*) FROM jobs WHERE org_id = $1`, org)
	const gone = `DELETE FROM jobs WHERE org_id = $1 AND state <> 1`
	text, args := exceptQueues(db.Where(gone, org), keep).SQL()
	if _, err := tx.Exec(ctx, text, args...); err != nil {
		return 0, fmt.Errorf("clear jobs: %w", err)
	}
	text, args = exceptQueues(f, keep).SQL()
	if err := tx.QueryRow(ctx, text, args...).Scan(&left); err != nil {
		return 0, fmt.Errorf("count jobs that are left: %w", err)
	}
	return left, nil
}

func exceptQueues(f *db.Filter, queues []string) *db.Filter {
	for _, q := range queues {
		f = f.And("queue <> ?", q)
	}
	return f
}
