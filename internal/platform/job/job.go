// Package job runs work that must not be lost. Jobs are enqueued in the transaction of the change that needs them
// and stored in a table. Workers claim them, and repeat them until they succeed or have used up their attempts.
package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
)

// Spec describes a job to enqueue.
type Spec struct {
	Org         string
	Queue       string // queue whose workers run the job
	Lane        string // fairness group, such as an endpoint; a backlog in one lane does not delay others; empty: one lane per organisation
	Kind        string
	Args        any
	RunAt       time.Time // zero: at once
	MaxAttempts int       // zero: 25
	UniqueKey   string    // at most one open job per key; enqueuing another does nothing
	OrderKey    string    // jobs with the same key run one after the other, in the order of enqueuing
}

// Job is a running job.
type Job struct {
	ID          string
	Org         string
	Queue       string
	Lane        string
	Kind        string
	Attempt     int // 1 for the first attempt
	MaxAttempts int
	OrderKey    string
	Args        []byte
	CreatedAt   db.Time
}

// Bind unmarshals the arguments.
func (j Job) Bind(args any) error {
	if err := json.Unmarshal(j.Args, args); err != nil {
		return fmt.Errorf("arguments of job %s: %w", j.ID, err)
	}
	return nil
}

// Last reports whether no attempt is left after this one.
func (j Job) Last() bool { return j.Attempt >= j.MaxAttempts }

// Retry is an error with the time of the next attempt.
type Retry struct {
	After      time.Duration
	Unordered  bool // later jobs of the same order key may run first
	NotCounted bool // the attempt does not count
	Cause      error
}

// Error implements error.
func (r *Retry) Error() string { return fmt.Sprintf("again in %s: %v", r.After, r.Cause) }

// Unwrap returns the cause.
func (r *Retry) Unwrap() error { return r.Cause }

// ErrDead ends a job without further attempts.
var ErrDead = errors.New("job given up")

// Queue enqueues jobs. All runners of a process share one Queue.
type Queue struct {
	Bus   *bus.Bus
	Clock clock.Clock // nil: the system clock

	ahead lookahead
}

// now returns the time of the queue's clock.
func (q *Queue) now() time.Time { return clock.OrSystem(q.Clock).Now() }

const defaultAttempts = 25

func wakeSubject(queue string) string { return "wake.jobs." + queue }

// Enqueue writes jobs in the caller's transaction.
func (q *Queue) Enqueue(ctx context.Context, tx db.Querier, specs ...Spec) error {
	rows := make([]any, 0, 12*len(specs))
	for _, s := range specs {
		row, err := q.row(s)
		if err != nil {
			return err
		}
		rows = append(rows, row...)
	}
	err := db.Bulk(len(specs), func(from, to int) error { return insert(ctx, tx, rows[from*columns:to*columns]) })
	if err != nil {
		return fmt.Errorf("enqueue %s: %w", specs[0].Kind, err)
	}
	woken := map[string]bool{}
	for _, s := range specs {
		if !woken[s.Queue] {
			woken[s.Queue] = true
			db.OnCommit(tx, func() { q.Bus.Publish(wakeSubject(s.Queue), nil) })
		}
	}
	return nil
}

// columns is the number of values of a new job.
const columns = 11

func (q *Queue) row(s Spec) ([]any, error) {
	args, err := json.Marshal(s.Args)
	if err != nil {
		return nil, fmt.Errorf("enqueue %s: %w", s.Kind, err)
	}
	if s.RunAt.IsZero() {
		s.RunAt = q.now()
	}
	if s.MaxAttempts == 0 {
		s.MaxAttempts = defaultAttempts
	}
	if s.Lane == "" {
		s.Lane = "org|" + s.Org
	}
	return []any{db.NewID("job"), s.Org, s.Queue, s.Lane, s.Kind, db.At(s.RunAt), s.MaxAttempts, db.Null(s.UniqueKey),
		db.Null(s.OrderKey), string(args), db.At(q.now())}, nil
}

func insert(ctx context.Context, tx db.Querier, rows []any) error {
	q := `INSERT INTO jobs (id, org_id, queue, lane, kind, run_at, max_attempts, unique_key, order_key, args, created_at, state, attempt)
		SELECT column1, column2, column3, column4, column5, column6, column7, column8, column9, column10, column11, 0, 0
		FROM (VALUES ` + db.Values(1, len(rows)/columns, "", "", "", "", "", "BIGINT", "INTEGER", "", "", "", "BIGINT") + `) AS v
		WHERE TRUE ON CONFLICT (unique_key) WHERE state < 2 AND unique_key IS NOT NULL DO NOTHING`
	_, err := tx.Exec(ctx, q, rows...)
	return err
}

// Hurry makes the open job with this unique key due at once. It does nothing if there is none.
func (q *Queue) Hurry(ctx context.Context, tx db.Querier, queue, org, uniqueKey string) error {
	const text = `UPDATE jobs SET run_at = $3 WHERE org_id = $1 AND unique_key = $2 AND state = 0 AND state < 2` // state < 2: SQLite uses a partial index only with its literal condition
	if _, err := tx.Exec(ctx, text, org, uniqueKey, db.At(q.now())); err != nil {
		return fmt.Errorf("hurry job: %w", err)
	}
	db.OnCommit(tx, func() { q.Bus.Publish(wakeSubject(queue), nil) })
	return nil
}

// Withdraw deletes the job with a unique key if it has not started, because its work is already done.
func (q *Queue) Withdraw(ctx context.Context, tx db.Querier, org, uniqueKey string) error {
	const text = `DELETE FROM jobs WHERE org_id = $1 AND unique_key = $2 AND state = 0 AND state < 2` // as in Hurry
	if _, err := tx.Exec(ctx, text, org, uniqueKey); err != nil {
		return fmt.Errorf("withdraw job: %w", err)
	}
	return nil
}

// HurryLane makes all open jobs of a lane of an organisation due at once.
func (q *Queue) HurryLane(ctx context.Context, tx db.Querier, queue, org, lane string) error {
	const text = `UPDATE jobs SET run_at = $4 WHERE org_id = $1 AND queue = $2 AND lane = $3 AND lane <> '' AND state = 0 AND run_at > $4`
	if _, err := tx.Exec(ctx, text, org, queue, lane, db.At(q.now())); err != nil {
		return fmt.Errorf("hurry jobs: %w", err)
	}
	db.OnCommit(tx, func() { q.Bus.Publish(wakeSubject(queue), nil) })
	return nil
}

// Wake makes the workers of a queue look for jobs, for example after the capacity of a lane has increased.
func (q *Queue) Wake(queue string) { q.Bus.Publish(wakeSubject(queue), nil) }
