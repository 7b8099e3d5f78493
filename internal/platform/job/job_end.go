package job

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"soniq/internal/platform/db"
)

// jobEnd is a finished job whose result is not written yet.
type jobEnd struct {
	job      Job
	err      error
	with     []func(ctx context.Context, tx db.Querier) error
	reported []any
	written  chan struct{}
}

type jobEndKey struct{}

// AtEnd adds fn to the transaction that writes the result of the job, so that the handler's changes and the result
// are atomic. Handlers call it with their context. If fn fails, the job is tried again.
func AtEnd(ctx context.Context, fn func(ctx context.Context, tx db.Querier) error) {
	e := ctx.Value(jobEndKey{}).(*jobEnd)
	e.with = append(e.with, fn)
}

// Report is AtEnd for frequent jobs: Options.Record gets the values of several jobs together.
func Report(ctx context.Context, value any) {
	e := ctx.Value(jobEndKey{}).(*jobEnd)
	e.reported = append(e.reported, value)
}

// Limits of writing results: concurrent transactions, and jobs per transaction.
const (
	writers  = 4
	endBatch = 64
)

// write writes results until the channel is closed. Waiting results are written together.
func (r *Runner) write(ends <-chan *jobEnd) {
	for e := range ends {
		r.writeBatch(append([]*jobEnd{e}, more(ends)...))
	}
}

// more returns the results that are waiting.
func more(ends <-chan *jobEnd) (batch []*jobEnd) {
	for len(batch) < endBatch-1 {
		select {
		case e, ok := <-ends:
			if !ok {
				return batch
			}
			batch = append(batch, e)
		default:
			return batch
		}
	}
	return batch
}

// writeBatch writes results. It tries again while the disk is full or the database not available. Jobs without a
// written result, and all jobs that wait for them, are blocked until their lease expires.
func (r *Runner) writeBatch(batch []*jobEnd) {
	err := r.tryBatch(batch)
	if err != nil {
		r.Log.Error("results of jobs not written", "queue", r.Name, "jobs", len(batch), "kind", batch[0].job.Kind, "err", err)
		err = r.retryBatch(batch, err)
	}
	for _, e := range batch {
		if err != nil {
			r.Log.Error("result of job not written", "job", e.job.ID, "kind", e.job.Kind, "err", err)
		}
		close(e.written)
	}
}

// firstWait and lastWait are the first and the longest delay between tries.
const (
	firstWait = 100 * time.Millisecond
	lastWait  = 5 * time.Second
)

// retryBatch writes the results as soon as possible. It gives up when the leases have expired, or at shutdown.
func (r *Runner) retryBatch(batch []*jobEnd, err error) error {
	over := time.NewTimer(r.Options.Timeout + leaseSlack)
	defer over.Stop()
	for wait := firstWait; err != nil && (db.IsFull(err) || db.IsUnavailable(err)); wait = min(2*wait, lastWait) {
		select {
		case <-over.C:
			return err
		case <-r.lifetime.Done():
			return err
		case <-time.After(wait):
			err = r.tryBatch(batch)
		}
	}
	return err
}

// tryBatch writes results together, or one by one if one of them fails.
func (r *Runner) tryBatch(batch []*jobEnd) error {
	return r.txContext(context.Background(), func(ctx context.Context, tx db.Querier) error {
		if err := r.writeTogether(ctx, batch); err == nil {
			return nil
		}
		for _, e := range batch {
			err := r.writeTogether(ctx, []*jobEnd{e})
			if err != nil {
				err = r.outcome(ctx, tx, e.job, fmt.Errorf("write what %s did: %w", e.job.Kind, err))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// writeTogether writes all of the results or none.
func (r *Runner) writeTogether(ctx context.Context, batch []*jobEnd) error {
	return r.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		var reported []any
		for _, e := range batch {
			reported = append(reported, e.reported...)
		}
		if len(reported) > 0 {
			if err := r.Options.Record(ctx, tx, reported); err != nil {
				return err
			}
		}
		for _, e := range batch {
			for _, fn := range e.with {
				if err := fn(ctx, tx); err != nil {
					return err
				}
			}
		}
		return r.outcomes(ctx, tx, batch)
	})
}

func (r *Runner) outcomes(ctx context.Context, tx db.Querier, batch []*jobEnd) error {
	var good []Job
	for _, e := range batch {
		if e.err == nil {
			good = append(good, e.job)
		} else if err := r.outcome(ctx, tx, e.job, e.err); err != nil {
			return err
		}
	}
	return db.Bulk(len(good), func(from, to int) error { return r.closeGood(ctx, tx, good[from:to]) })
}

// backoff returns the delay after the n-th failed attempt if the handler sets none.
func backoff(attempt int) time.Duration {
	return min(time.Duration(attempt*attempt*attempt)*time.Second, 6*time.Hour)
}

// outcome writes the result of a handler: done, retry or dead.
func (r *Runner) outcome(ctx context.Context, tx db.Querier, j Job, err error) error {
	if err == nil {
		return r.closeGood(ctx, tx, []Job{j})
	}
	var again *Retry
	asked := errors.As(err, &again)
	if !asked {
		r.Log.Warn("job failed", "job", j.ID, "kind", j.Kind, "attempt", j.Attempt, "err", err)
	}
	if errors.Is(err, ErrDead) || j.Last() && !(asked && again.NotCounted) {
		return r.bury(ctx, tx, j, err)
	}
	if !asked {
		again = &Retry{After: backoff(j.Attempt), Cause: err}
	}
	return r.again(ctx, tx, j, again)
}

// held is the condition that the worker still holds the job: no other worker took it over after the lease. A job that
// is not running has no worker, or has ended.
const held = ` WHERE org_id = $1 AND id = $2 AND worker = $3 AND attempt = $4`

func (r *Runner) closeGood(ctx context.Context, tx db.Querier, good []Job) error {
	args := []any{db.At(r.Queue.now())}
	for _, j := range good {
		args = append(args, j.ID, j.Attempt)
	}
	// tenant: jobs are found by their own id
	q := `UPDATE jobs SET state = 2, finished_at = $1, last_error = NULL, lease_until = NULL
		FROM (VALUES ` + db.Values(2, len(good), "", "INTEGER") + `) AS v
		WHERE jobs.id = v.column1 AND jobs.attempt = v.column2 AND worker = $` + strconv.Itoa(2+2*len(good))
	_, err := tx.Exec(ctx, q, append(args, r.Node)...)
	return err
}

func (r *Runner) bury(ctx context.Context, tx db.Querier, j Job, cause error) error {
	const q = `UPDATE jobs SET state = 3, finished_at = $5, last_error = $6, lease_until = NULL` + held
	_, err := tx.Exec(ctx, q, j.Org, j.ID, r.Node, j.Attempt, db.At(r.Queue.now()), db.Null(cause.Error()))
	return err
}

func (r *Runner) again(ctx context.Context, tx db.Querier, j Job, a *Retry) error {
	order, attempt := j.OrderKey, j.Attempt
	if a.Unordered {
		order = ""
	}
	if a.NotCounted {
		attempt--
	}
	const q = `UPDATE jobs SET state = 0, run_at = $5, order_key = $6, last_error = $7, attempt = $8, lease_until = NULL,
		worker = NULL` + held
	_, err := tx.Exec(ctx, q, j.Org, j.ID, r.Node, j.Attempt, db.At(r.Queue.now().Add(a.After)), db.Null(order),
		db.Null(a.Error()), attempt)
	return err
}

// Sweep deletes jobs that ended before the given time in batches, and returns their number.
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
