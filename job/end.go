package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"soniq/db"
)

// An end is a job that was done, on its way into the table.
type end struct {
	job     Job
	err     error
	with    []func(ctx context.Context, tx db.Querier) error
	written chan struct{}
}

type endKey struct{}

// AtEnd adds fn to the transaction that writes down how the job ended, so that what a handler did and the end of the
// job are one. It is for handlers, with the context they were given. When fn fails, the job is tried again.
func AtEnd(ctx context.Context, fn func(ctx context.Context, tx db.Querier) error) {
	e := ctx.Value(endKey{}).(*end)
	e.with = append(e.with, fn)
}

// These bound how ends are written: by how many transactions at once, with how many jobs in each.
const (
	writers  = 4
	endBatch = 64
)

// write writes ends down until the channel is closed; what waits is written together.
func (r *Runner) write(ends <-chan *end) {
	for e := range ends {
		batch := []*end{e}
		for len(batch) < endBatch {
			select {
			case more, ok := <-ends:
				if ok {
					batch = append(batch, more)
					continue
				}
			default:
			}
			break
		}
		r.writeBatch(batch)
	}
}

func (r *Runner) writeBatch(batch []*end) {
	ctx := context.Background()
	err := r.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		for _, e := range batch {
			if err := r.writeEnd(ctx, tx, e); err != nil {
				return err
			}
		}
		return nil
	})
	for _, e := range batch {
		if err != nil {
			r.Log.Error("end of job not written", "job", e.job.ID, "kind", e.job.Kind, "err", err)
		}
		close(e.written)
	}
}

// writeEnd writes one end. Where the handler's own part fails, the job is tried again; the batch goes on.
func (r *Runner) writeEnd(ctx context.Context, tx db.Querier, e *end) error {
	if len(e.with) == 0 {
		return r.outcome(ctx, tx, e.job, e.err)
	}
	err := r.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		for _, fn := range e.with {
			if err := fn(ctx, tx); err != nil {
				return err
			}
		}
		return r.outcome(ctx, tx, e.job, e.err)
	})
	if err == nil {
		return nil
	}
	return r.outcome(ctx, tx, e.job, fmt.Errorf("write what %s did: %w", e.job.Kind, err))
}

// backoff is the delay after the n-th failed attempt where the handler names none.
func backoff(attempt int) time.Duration {
	return min(time.Duration(attempt*attempt*attempt)*time.Second, 6*time.Hour)
}

// outcome writes what follows from a handler's answer.
func (r *Runner) outcome(ctx context.Context, tx db.Querier, j Job, err error) error {
	if err == nil {
		return r.close(ctx, tx, j, 2, "")
	}
	var again *Retry
	asked := errors.As(err, &again)
	if !asked {
		r.Log.Warn("job failed", "job", j.ID, "kind", j.Kind, "attempt", j.Attempt, "err", err)
	}
	if errors.Is(err, ErrDead) || j.Last() && !(asked && again.Free) {
		return r.close(ctx, tx, j, 3, err.Error())
	}
	if !asked {
		again = &Retry{After: backoff(j.Attempt), Cause: err}
	}
	return r.again(ctx, tx, j, again)
}

// held is the condition under which a worker may still write: nobody took the job over after its lease.
const held = ` WHERE org_id = $1 AND id = $2 AND state = 1 AND worker = $3 AND attempt = $4`

func (r *Runner) close(ctx context.Context, tx db.Querier, j Job, state int, cause string) error {
	const q = `UPDATE jobs SET state = $5, finished_at = $6, last_error = $7, lease_until = NULL` + held
	_, err := tx.Exec(ctx, q, j.Org, j.ID, r.Node, j.Attempt, state, db.At(r.Queue.Now()), db.Null(cause))
	return err
}

func (r *Runner) again(ctx context.Context, tx db.Querier, j Job, a *Retry) error {
	order, attempt := j.OrderKey, j.Attempt
	if a.Unordered {
		order = ""
	}
	if a.Free {
		attempt--
	}
	const q = `UPDATE jobs SET state = 0, run_at = $5, order_key = $6, last_error = $7, attempt = $8, lease_until = NULL,
		worker = NULL` + held
	_, err := tx.Exec(ctx, q, j.Org, j.ID, r.Node, j.Attempt, db.At(r.Queue.Now().Add(a.After)), db.Null(order),
		db.Null(a.Error()), attempt)
	return err
}

// Sweep deletes jobs that ended before the given time, a batch at a time, and returns how many went.
func Sweep(ctx context.Context, d *db.DB, before time.Time) (int64, error) {
	const batch = 500
	var gone int64
	for {
		var n int64
		err := d.Tx(ctx, func(tx db.Querier) error {
			// tenant: a sweep over all organisations
			const q = `DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE state >= 2 AND finished_at < $1 LIMIT $2)`
			r, err := tx.Exec(ctx, q, db.At(before), batch)
			if err != nil {
				return err
			}
			n, err = r.RowsAffected()
			return err
		})
		if gone += n; err != nil || n < batch {
			return gone, err
		}
	}
}
