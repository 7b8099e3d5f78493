package job

import (
	"context"
	"fmt"
	"time"

	"soniq/db"
)

// This file may hold SQL that differs between the databases; see architecture.

// due looks, without writing, whether a job is ready, and otherwise when the next one will be.
func (r *Runner) due(ctx context.Context) (bool, time.Duration, error) {
	// tenant: work is claimed for all organisations
	const q = `SELECT min(run_at) FROM jobs WHERE queue = $1 AND state = 0`
	var first db.Time
	if err := r.DB.Read(ctx).QueryRow(ctx, q, r.Name).Scan(&first); err != nil {
		return false, poll, err
	}
	if first.IsZero() {
		return false, poll, nil
	}
	wait := first.Sub(r.Queue.Now())
	return wait <= 0, min(max(wait, time.Millisecond), poll), nil
}

// lanesDue lists the lanes with ready jobs by walking the index from lane to lane.
const lanesDue = `WITH RECURSIVE l(lane) AS (
		SELECT min(lane) FROM jobs WHERE queue = $1 AND state = 0
		UNION ALL
		SELECT (SELECT min(j.lane) FROM jobs j WHERE j.queue = $1 AND j.state = 0 AND j.lane > l.lane)
		FROM l WHERE l.lane IS NOT NULL)
	SELECT lane FROM l WHERE lane IS NOT NULL`

// laneShare is how many jobs of one lane are claimed before the next lane has its turn.
const laneShare = 8

// claim takes up to free jobs, a few of each lane.
func (r *Runner) claim(ctx context.Context, free int) ([]Job, error) {
	var jobs []Job
	err := r.DB.Tx(ctx, func(tx db.Querier) error {
		jobs = nil
		lanes, err := r.listLanes(ctx, tx)
		if err != nil {
			return err
		}
		for _, lane := range lanes {
			n := min(laneShare, r.room(lane, free-len(jobs)))
			if n <= 0 {
				continue
			}
			if jobs, err = r.claimLane(ctx, tx, lane, n, jobs); err != nil {
				return err
			}
		}
		return nil
	})
	return jobs, err
}

func (r *Runner) listLanes(ctx context.Context, tx db.Querier) ([]string, error) {
	// tenant: work is claimed for all organisations
	rows, err := tx.Query(ctx, lanesDue, r.Name)
	if err != nil {
		return nil, fmt.Errorf("list lanes: %w", err)
	}
	defer rows.Close()
	var lanes []string
	for rows.Next() {
		var l string
		if err := rows.Scan(&l); err != nil {
			return nil, err
		}
		lanes = append(lanes, l)
	}
	return lanes, rows.Err()
}

func (r *Runner) claimLane(ctx context.Context, tx db.Querier, lane string, n int, jobs []Job) ([]Job, error) {
	now := r.Queue.Now()
	// tenant: work is claimed for all organisations
	q := `UPDATE jobs SET state = 1, attempt = attempt + 1, worker = $1, lease_until = $2 WHERE id IN (
			SELECT id FROM jobs j WHERE queue = $3 AND lane = $4 AND state = 0 AND run_at <= $5
				AND (order_key IS NULL OR NOT EXISTS (SELECT 1 FROM jobs p
					WHERE p.order_key = j.order_key AND p.state < 2 AND p.id < j.id))
			ORDER BY run_at, id LIMIT $6` + r.DB.SkipLocked() + `)
		RETURNING id, org_id, queue, lane, kind, attempt, max_attempts, order_key, args, created_at`
	rows, err := tx.Query(ctx, q, r.Node, db.At(now.Add(r.Options.Timeout+leaseSlack)), r.Name, lane, db.At(now), n)
	if err != nil {
		return jobs, fmt.Errorf("claim jobs: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var j Job
		var order db.Null
		var args string
		if err := rows.Scan(&j.ID, &j.Org, &j.Queue, &j.Lane, &j.Kind, &j.Attempt, &j.MaxAttempts, &order, &args, &j.CreatedAt); err != nil {
			return jobs, err
		}
		j.OrderKey, j.Args = string(order), []byte(args)
		jobs = append(jobs, j)
	}
	return jobs, rows.Err()
}

// leaseSlack is how long after its timeout a job is left to its worker.
const leaseSlack = 30 * time.Second

// recover makes ready again what this node was doing when it died, and what other nodes no longer hold.
func (r *Runner) recover(ctx context.Context) error {
	return r.DB.Tx(ctx, func(tx db.Querier) error {
		// tenant: recovery of all organisations' work
		const q = `UPDATE jobs SET state = 0, lease_until = NULL, worker = NULL
			WHERE queue = $1 AND state = 1 AND (worker = $2 OR lease_until < $3)`
		_, err := tx.Exec(ctx, q, r.Name, r.Node, db.At(r.Queue.Now()))
		return err
	})
}

func (r *Runner) close(ctx context.Context, tx db.Querier, j Job, state int, cause string) error {
	const q = `UPDATE jobs SET state = $3, finished_at = $4, last_error = $5, lease_until = NULL
		WHERE org_id = $1 AND id = $2`
	_, err := tx.Exec(ctx, q, j.Org, j.ID, state, db.At(r.Queue.Now()), db.Null(cause))
	return err
}

func (r *Runner) again(ctx context.Context, tx db.Querier, j Job, after time.Duration, order string, cause error) error {
	const q = `UPDATE jobs SET state = 0, run_at = $3, order_key = $4, last_error = $5, lease_until = NULL, worker = NULL
		WHERE org_id = $1 AND id = $2`
	_, err := tx.Exec(ctx, q, j.Org, j.ID, db.At(r.Queue.Now().Add(after)), db.Null(order), db.Null(cause.Error()))
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
