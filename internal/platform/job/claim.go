package job

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"soniq/internal/platform/db"
)

// Claims of jobs and lanes. SQL in this file may differ between the databases, because row locks do.

// claimSize limits one claim: the number of jobs, and of lanes.
const claimSize = 64

// claim claims up to free jobs. If all due jobs fit into one claim, it is one statement. With a
// backlog, organisations take turns, and the lanes of an organisation take its turns. So the jobs and lanes of one
// organisation do not delay those of another.
func (r *Runner) claim(ctx context.Context, free int) (jobs []Job, next time.Duration, err error) {
	due, err := r.due(ctx)
	if err != nil {
		return nil, poll, err
	}
	if len(due) == 0 {
		next, err = r.next(ctx)
		return nil, next, err
	}
	if len(due) <= claimSize {
		r.turns = turns{}
		jobs, err = r.claimThese(ctx, due, free)
	} else {
		jobs, err = r.claimTurns(ctx, free)
	}
	return jobs, poll, err
}

// candidate is a job that can be claimed.
type candidate struct{ id, org, lane string }

// openEarlier excludes jobs whose order key has an earlier job that has not ended.
const openEarlier = `(order_key IS NULL OR NOT EXISTS (SELECT 1 FROM jobs p
		WHERE p.order_key = j.order_key AND p.state < 2 AND p.id < j.id))`

// due returns the jobs that can be claimed, oldest first, one more than fit into a claim. It only reads.
func (r *Runner) due(ctx context.Context) ([]candidate, error) {
	// tenant: work is claimed for all organisations
	const q = `SELECT id, org_id, lane FROM jobs j WHERE queue = $1 AND state = 0 AND run_at <= $2 AND ` + openEarlier + `
		ORDER BY run_at, id LIMIT 65` // claimSize + 1; SQLite prepares a statement again for each value bound to a LIMIT
	rows, err := r.DB.Read(ctx).Query(ctx, q, r.Name, db.At(r.Queue.now()))
	if err != nil {
		return nil, fmt.Errorf("list due jobs: %w", err)
	}
	defer rows.Close()
	var due []candidate
	for rows.Next() {
		var c candidate
		if err := rows.Scan(&c.id, &c.org, &c.lane); err != nil {
			return nil, err
		}
		due = append(due, c)
	}
	return due, rows.Err()
}

// next returns the time until the next job becomes due, or idle if there is none.
func (r *Runner) next(ctx context.Context) (time.Duration, error) {
	now := r.Queue.now()
	// tenant: work is claimed for all organisations
	const q = `SELECT min(run_at) FROM jobs WHERE queue = $1 AND state = 0 AND run_at > $2`
	var first db.Time
	if err := r.DB.Read(ctx).QueryRow(ctx, q, r.Name, db.At(now)).Scan(&first); err != nil {
		return poll, err
	}
	if first.IsZero() {
		return idle, nil
	}
	return first.Sub(now), nil
}

const returning = ` RETURNING id, org_id, queue, lane, kind, attempt, max_attempts, order_key, args, created_at`

// stillReady is state = 0 in a form that matches no partial index, because jobs are found by their IDs.
const stillReady = `state + 0 = 0`

// claimThese claims the candidates whose lanes and organisations have free capacity.
func (r *Runner) claimThese(ctx context.Context, due []candidate, free int) ([]Job, error) {
	ids := r.chosen(due, free)
	if len(ids) == 0 {
		return nil, nil
	}
	args := []any{r.Node, db.At(r.Queue.now().Add(r.Options.Timeout + leaseSlack))}
	for _, id := range ids {
		args = append(args, id)
	}
	// tenant: work is claimed for all organisations
	q := `UPDATE jobs SET state = 1, attempt = attempt + 1, worker = $1, lease_until = $2
		WHERE ` + stillReady + ` AND id IN (` + marks(3, len(ids)) + `)` + returning
	var jobs []Job
	err := r.tx(ctx, func(tx db.Querier) (err error) {
		jobs, err = scanJobs(ctx, tx, nil, q, args...)
		return err
	})
	return jobs, err
}

// chosen returns the candidates that fit into the capacity of their lanes and organisations.
func (r *Runner) chosen(due []candidate, free int) []string {
	var ids []string
	taken, ofOrg := map[string]int{}, map[string]int{}
	for _, c := range due {
		if len(ids) < free && taken[c.lane] < r.capacity(c.lane) && ofOrg[c.org] < r.orgCapacity(c.org) {
			taken[c.lane]++
			ofOrg[c.org]++
			ids = append(ids, c.id)
		}
	}
	return ids
}

// marks returns n placeholders, starting with $from.
func marks(from, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("$" + strconv.Itoa(from+i))
	}
	return b.String()
}

// tx runs the transaction of a claim or an end. With a pace it does not wait for the disk: a power failure may revert
// it, and the jobs run again.
func (r *Runner) tx(ctx context.Context, fn func(tx db.Querier) error) error {
	return r.txContext(ctx, func(_ context.Context, tx db.Querier) error { return fn(tx) })
}

func (r *Runner) txContext(ctx context.Context, fn func(ctx context.Context, tx db.Querier) error) error {
	if r.Options.Pace > 0 {
		return r.DB.TxRelaxedContext(ctx, fn)
	}
	return r.DB.TxContext(ctx, fn)
}

func scanJobs(ctx context.Context, tx db.Querier, jobs []Job, q string, args ...any) ([]Job, error) {
	rows, err := tx.Query(ctx, q, args...)
	if err != nil {
		return jobs, fmt.Errorf("claim jobs: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var j Job
		var order db.Null
		var args string
		if err := rows.Scan(&j.ID, &j.Org, &j.Queue, &j.Lane, &j.Kind, &j.Attempt, &j.MaxAttempts, &order, &args,
			&j.CreatedAt); err != nil {
			return jobs, err
		}
		j.OrderKey, j.Args = string(order), []byte(args)
		jobs = append(jobs, j)
	}
	return jobs, rows.Err()
}

// leaseSlack is the time that the lease exceeds the timeout.
const leaseSlack = 30 * time.Second

// recover makes jobs ready again that this node was running when it died.
func (r *Runner) recover(ctx context.Context) error {
	return r.DB.Tx(ctx, func(tx db.Querier) error {
		// tenant: recovery of all organisations' work
		const q = `UPDATE jobs SET state = 0, lease_until = NULL, worker = NULL
			WHERE queue = $1 AND state = 1 AND worker = $2`
		_, err := tx.Exec(ctx, q, r.Name, r.Node)
		return err
	})
}

// GiveBack makes jobs of all queues ready again that a node was running when it was lost. A result that the node writes
// later is dropped, because it holds the jobs no more.
func GiveBack(ctx context.Context, tx db.Querier, node string) error {
	// tenant: recovery of all organisations' work
	const q = `UPDATE jobs SET state = 0, lease_until = NULL, worker = NULL WHERE state = 1 AND worker = $1`
	if _, err := tx.Exec(ctx, q, node); err != nil {
		return fmt.Errorf("give back jobs of node %s: %w", node, err)
	}
	return nil
}

// expire makes jobs of all queues ready again whose lease has expired.
func expire(ctx context.Context, d *db.DB, now time.Time) error {
	return d.Tx(ctx, func(tx db.Querier) error {
		// tenant: recovery of all organisations' work
		const q = `UPDATE jobs SET state = 0, lease_until = NULL, worker = NULL WHERE state = 1 AND lease_until < $1`
		if _, err := tx.Exec(ctx, q, db.At(now)); err != nil {
			return fmt.Errorf("free jobs with an expired lease: %w", err)
		}
		return nil
	})
}

// disown makes jobs ready again that are assigned to this node in the table, but do not run here: the response to the
// claim was lost with the connection. No claim runs meanwhile.
func (r *Runner) disown(ctx context.Context) error {
	err := r.DB.Tx(ctx, func(tx db.Querier) error {
		ids, err := r.claimed(ctx, tx)
		if err != nil {
			return err
		}
		for _, id := range ids {
			r.mu.Lock()
			mine := r.mine[id]
			r.mu.Unlock()
			if mine > 0 {
				continue
			}
			// tenant: a job is found by its own id
			const q = `UPDATE jobs SET state = 0, lease_until = NULL, worker = NULL, attempt = attempt - 1
				WHERE id = $1 AND worker = $2 AND state = 1`
			if _, err := tx.Exec(ctx, q, id, r.Node); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("give jobs back: %w", err)
	}
	return nil
}

// claimed returns the jobs assigned to this node in the table.
func (r *Runner) claimed(ctx context.Context, tx db.Querier) ([]string, error) {
	// tenant: the work of all organisations
	return db.Strings(ctx, tx, "find claimed jobs", `SELECT id FROM jobs WHERE queue = $1 AND worker = $2 AND state = 1`, r.Name, r.Node)
}
