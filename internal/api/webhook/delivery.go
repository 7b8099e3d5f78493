package webhook

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// States of a delivery. Delivering is not stored: it means that this node is sending it now.
const (
	pending    = "pending"
	delivering = "delivering"
	retrying   = "retrying"
	succeeded  = "succeeded"
	exhausted  = "exhausted"
	discarded  = "discarded"
)

// Delivery is the delivery of one event to one endpoint.
type Delivery struct {
	ID            string    `json:"id" example:"dlv_01JB2M"`
	WebhookID     string    `json:"webhook_id"`
	EventID       string    `json:"event_id" doc:"Sent as webhook-id; the same on every attempt and every replay"`
	Event         string    `json:"event" example:"call.ended"`
	Status        string    `json:"status" enum:"pending,delivering,retrying,succeeded,exhausted,discarded"`
	Body          string    `json:"body,omitempty" doc:"Exactly what is sent; not in lists"`
	Attempts      []Attempt `json:"attempts,omitempty" doc:"Not in lists"`
	AttemptCount  int       `json:"attempt_count"`
	NextAttemptAt *db.Time  `json:"next_attempt_at"`
	ReplayOf      *string   `json:"replay_of"`
	CreatedAt     db.Time   `json:"created_at"`
	FinishedAt    *db.Time  `json:"finished_at"`
}

// Attempt is one request to the endpoint.
type Attempt struct {
	N              int     `json:"n"`
	At             db.Time `json:"at"`
	DurationMS     int     `json:"duration_ms"`
	ResponseStatus *int    `json:"response_status"`
	ResponseBody   *string `json:"response_body" doc:"The first 2 KB"`
	Error          *string `json:"error" enum:"dns,connect,tls,timeout,status,signature_rejected,blocked_address,redirect"`
}

// delivery is a stored Delivery.
type delivery struct {
	Org, ID, WebhookID        string
	EventID, Kind             string
	CallID                    string
	Sequence                  int64
	Body                      string
	Status                    string
	Held                      bool
	Attempts, CountedAttempts int // all attempts, and those that count against the twelve
	ResponseStatus            int
	FirstAt                   db.Time // of the first attempt
	NextAt                    db.Time
	ReplayOf                  string
	CreatedAt                 db.Time
	FinishedAt                db.Time
}

func (d *delivery) toAPI() Delivery {
	return Delivery{ID: d.ID, WebhookID: d.WebhookID, EventID: d.EventID, Event: d.Kind, Status: d.Status,
		AttemptCount: d.Attempts, NextAttemptAt: d.NextAt.Ptr(), ReplayOf: db.Null(d.ReplayOf).Ptr(),
		CreatedAt: d.CreatedAt, FinishedAt: d.FinishedAt.Ptr()}
}

// orderKey returns the key under which deliveries keep their order: the endpoint and the call. Replays have their own
// order.
func (d *delivery) orderKey() string {
	switch {
	case d.CallID == "":
		return ""
	case d.ReplayOf != "":
		return d.WebhookID + "|again|" + d.CallID
	}
	return d.WebhookID + "|" + d.CallID
}

const deliveryColumns = `org_id, id, webhook_id, event_id, kind, call_id, sequence, body, status, held, attempts, spent,
	COALESCE(response_status, 0), first_at, next_attempt_at, replay_of, created_at, finished_at`

func scanDelivery(row scanner) (*delivery, error) {
	var d delivery
	var call, replay db.Null
	err := row.Scan(&d.Org, &d.ID, &d.WebhookID, &d.EventID, &d.Kind, &call, &d.Sequence, &d.Body, &d.Status, &d.Held,
		&d.Attempts, &d.CountedAttempts, &d.ResponseStatus, &d.FirstAt, &d.NextAt, &replay, &d.CreatedAt, &d.FinishedAt)
	d.CallID, d.ReplayOf = string(call), string(replay)
	return &d, err
}

func insertDeliveries(ctx context.Context, tx db.Querier, all []*delivery) error {
	return db.Bulk(len(all), func(from, to int) error {
		q := `INSERT INTO webhook_deliveries (org_id, id, webhook_id, event_id, kind, call_id, sequence, body, status, held,
				next_attempt_at, replay_of, created_at, attempts, spent)
			SELECT column1, column2, column3, column4, column5, column6, column7, column8, column9, column10, column11, column12, column13,
			0, 0
			FROM (VALUES ` + db.Values(1, to-from, "", "", "", "", "", "", "BIGINT", "", "", "BOOLEAN", "BIGINT", "", "BIGINT") + `) AS v`
		var args []any
		for _, d := range all[from:to] {
			args = append(args, d.Org, d.ID, d.WebhookID, d.EventID, d.Kind, db.Null(d.CallID), d.Sequence, d.Body, d.Status,
				d.Held, d.NextAt, db.Null(d.ReplayOf), d.CreatedAt)
		}
		if _, err := tx.Exec(ctx, q, args...); err != nil {
			return fmt.Errorf("insert deliveries: %w", err)
		}
		return nil
	})
}

func getDelivery(ctx context.Context, q db.Querier, org, id string) (*delivery, error) {
	const text = `SELECT ` + deliveryColumns + ` FROM webhook_deliveries WHERE org_id = $1 AND id = $2`
	return scanDelivery(q.QueryRow(ctx, text, org, id))
}

func listDeliveries(ctx context.Context, q db.Querier, text string, args ...any) ([]*delivery, error) {
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	defer rows.Close()
	var all []*delivery
	for rows.Next() {
		d, err := scanDelivery(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, rows.Err()
}

// listHeld returns held deliveries of an endpoint, in order.
func listHeld(ctx context.Context, q db.Querier, org, webhook string, limit int) ([]*delivery, error) {
	const text = `SELECT ` + deliveryColumns + ` FROM webhook_deliveries
		WHERE org_id = $1 AND webhook_id = $2 AND held ORDER BY sequence, id LIMIT $3`
	return listDeliveries(ctx, q, text, org, webhook, limit)
}

// unfinished is finished_at IS NULL in a form that matches no partial index, because the rows are to be found by
// their ids.
const unfinished = `COALESCE(finished_at, 0) = 0`

func setHeld(ctx context.Context, tx db.Querier, org, id string, held bool, next db.Time) error {
	const q = `UPDATE webhook_deliveries SET held = $3, next_attempt_at = $4 WHERE org_id = $1 AND id = $2 AND ` + unfinished
	if _, err := tx.Exec(ctx, q, org, id, held, next); err != nil {
		return fmt.Errorf("hold delivery: %w", err)
	}
	return nil
}

// updateDeliveries writes the results of attempts. A delivery that was finished meanwhile, because its endpoint was
// deleted, is unchanged.
func updateDeliveries(ctx context.Context, tx db.Querier, all []*delivery) error {
	return db.Bulk(len(all), func(from, to int) error {
		// tenant: each row names its organisation
		q := `UPDATE webhook_deliveries SET status = v.column3, held = v.column4, attempts = v.column5, spent = v.column6,
				response_status = v.column7, first_at = v.column8, next_attempt_at = v.column9, finished_at = v.column10
			FROM (VALUES ` + db.Values(1, to-from, "", "", "", "BOOLEAN", "INTEGER", "INTEGER", "INTEGER", "BIGINT", "BIGINT", "BIGINT") +
			`) AS v
			WHERE org_id = v.column1 AND id = v.column2 AND ` + unfinished
		var args []any
		for _, d := range all[from:to] {
			args = append(args, d.Org, d.ID, d.Status, d.Held, d.Attempts, d.CountedAttempts, nullIfZero(d.ResponseStatus), d.FirstAt,
				d.NextAt, d.FinishedAt)
		}
		if _, err := tx.Exec(ctx, q, args...); err != nil {
			return fmt.Errorf("update deliveries: %w", err)
		}
		return nil
	})
}

// nullIfZero stores 0 as NULL.
func nullIfZero(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

// insertAttempts stores attempts. If a job ran twice, the first result of the attempt is kept.
func insertAttempts(ctx context.Context, tx db.Querier, all []outcome) error {
	return db.Bulk(len(all), func(from, to int) error {
		q := `INSERT INTO webhook_attempts (org_id, delivery_id, n, webhook_id, at, duration_ms, response_status, response_body, error)
			SELECT column1, column2, column3, column4, column5, column6, column7, column8, column9
			FROM (VALUES ` + db.Values(1, to-from, "", "", "INTEGER", "", "BIGINT", "INTEGER", "INTEGER", "", "") + `) AS v
			WHERE TRUE ON CONFLICT (org_id, delivery_id, n) DO NOTHING`
		var args []any
		for _, o := range all[from:to] {
			args = append(args, o.delivery.Org, o.delivery.ID, o.delivery.Attempts, o.delivery.WebhookID, o.result.at,
				o.result.took.Milliseconds(), nullIfZero(o.result.status), db.Null(o.result.body), db.Null(o.result.fault))
		}
		if _, err := tx.Exec(ctx, q, args...); err != nil {
			return fmt.Errorf("insert attempts: %w", err)
		}
		return nil
	})
}

func listAttempts(ctx context.Context, q db.Querier, org, delivery string) ([]Attempt, error) {
	const text = `SELECT n, at, duration_ms, response_status, response_body, error FROM webhook_attempts
		WHERE org_id = $1 AND delivery_id = $2 ORDER BY n`
	rows, err := q.Query(ctx, text, org, delivery)
	if err != nil {
		return nil, fmt.Errorf("list attempts: %w", err)
	}
	defer rows.Close()
	all := []Attempt{}
	for rows.Next() {
		var a Attempt
		if err := rows.Scan(&a.N, &a.At, &a.DurationMS, &a.ResponseStatus, &a.ResponseBody, &a.Error); err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, rows.Err()
}
