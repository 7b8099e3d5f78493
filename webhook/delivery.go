package webhook

import (
	"context"
	"fmt"

	"soniq/db"
)

// The states of a delivery. Delivering is not stored: it is what this node is doing right now.
const (
	pending    = "pending"
	delivering = "delivering"
	retrying   = "retrying"
	succeeded  = "succeeded"
	exhausted  = "exhausted"
	discarded  = "discarded"
)

// A Delivery is one event on its way to one endpoint.
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

// An Attempt is one request to the endpoint.
type Attempt struct {
	N              int     `json:"n"`
	At             db.Time `json:"at"`
	DurationMS     int     `json:"duration_ms"`
	ResponseStatus *int    `json:"response_status"`
	ResponseBody   *string `json:"response_body" doc:"The first 2 KB"`
	Error          *string `json:"error" enum:"dns,connect,tls,timeout,status,signature_rejected,blocked_address,redirect"`
}

// delivery is a Delivery as it is stored.
type delivery struct {
	Org, ID, WebhookID string
	EventID, Kind      string
	CallID             string
	Sequence           int64
	Body               string
	Status             string
	Held               bool
	Attempts, Spent    int // all attempts, and those that used up one of the twelve
	ResponseStatus     int
	FirstAt            db.Time // of the first attempt
	NextAt             db.Time
	ReplayOf           string
	CreatedAt          db.Time
	FinishedAt         db.Time
}

func (d *delivery) record() Delivery {
	return Delivery{ID: d.ID, WebhookID: d.WebhookID, EventID: d.EventID, Event: d.Kind, Status: d.Status,
		AttemptCount: d.Attempts, NextAttemptAt: d.NextAt.Ptr(), ReplayOf: db.Null(d.ReplayOf).Ptr(),
		CreatedAt: d.CreatedAt, FinishedAt: d.FinishedAt.Ptr()}
}

// orderKey keeps the events of one call in order on their way to one endpoint.
func (d *delivery) orderKey() string {
	if d.CallID == "" || d.ReplayOf != "" {
		return ""
	}
	return d.WebhookID + "|" + d.CallID
}

const deliveryColumns = `org_id, id, webhook_id, event_id, kind, call_id, sequence, body, status, held, attempts, spent,
	COALESCE(response_status, 0), first_at, next_attempt_at, replay_of, created_at, finished_at`

func scanDelivery(row scanner) (*delivery, error) {
	var d delivery
	var call, replay db.Null
	err := row.Scan(&d.Org, &d.ID, &d.WebhookID, &d.EventID, &d.Kind, &call, &d.Sequence, &d.Body, &d.Status, &d.Held,
		&d.Attempts, &d.Spent, &d.ResponseStatus, &d.FirstAt, &d.NextAt, &replay, &d.CreatedAt, &d.FinishedAt)
	d.CallID, d.ReplayOf = string(call), string(replay)
	return &d, err
}

func insertDelivery(ctx context.Context, tx db.Querier, d *delivery) error {
	const q = `INSERT INTO webhook_deliveries (org_id, id, webhook_id, event_id, kind, call_id, sequence, body, status, held,
			attempts, spent, next_attempt_at, replay_of, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, 0, $11, $12, $13)`
	_, err := tx.Exec(ctx, q, d.Org, d.ID, d.WebhookID, d.EventID, d.Kind, db.Null(d.CallID), d.Sequence, d.Body, d.Status,
		d.Held, d.NextAt, db.Null(d.ReplayOf), d.CreatedAt)
	if err != nil {
		return fmt.Errorf("insert delivery: %w", err)
	}
	return nil
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

// listHeld returns the deliveries that wait for an endpoint to come back, in order.
func listHeld(ctx context.Context, q db.Querier, org, webhook string, limit int) ([]*delivery, error) {
	const text = `SELECT ` + deliveryColumns + ` FROM webhook_deliveries
		WHERE org_id = $1 AND webhook_id = $2 AND held ORDER BY sequence, id LIMIT $3`
	return listDeliveries(ctx, q, text, org, webhook, limit)
}

func setHeld(ctx context.Context, tx db.Querier, org, id string, held bool, next db.Time) error {
	const q = `UPDATE webhook_deliveries SET held = $3, next_attempt_at = $4 WHERE org_id = $1 AND id = $2 AND finished_at IS NULL`
	if _, err := tx.Exec(ctx, q, org, id, held, next); err != nil {
		return fmt.Errorf("hold delivery: %w", err)
	}
	return nil
}

// updateDelivery writes how an attempt changed it; one that ended meanwhile, because its endpoint was deleted, stays
// as it is.
func updateDelivery(ctx context.Context, tx db.Querier, d *delivery) error {
	const q = `UPDATE webhook_deliveries SET status = $3, held = $4, attempts = $5, spent = $6, response_status = $7,
			first_at = $8, next_attempt_at = $9, finished_at = $10
		WHERE org_id = $1 AND id = $2 AND finished_at IS NULL`
	_, err := tx.Exec(ctx, q, d.Org, d.ID, d.Status, d.Held, d.Attempts, d.Spent, number(d.ResponseStatus), d.FirstAt,
		d.NextAt, d.FinishedAt)
	if err != nil {
		return fmt.Errorf("update delivery: %w", err)
	}
	return nil
}

// number stores 0 as NULL.
func number(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func insertAttempt(ctx context.Context, tx db.Querier, d *delivery, r result) error {
	const q = `INSERT INTO webhook_attempts (org_id, delivery_id, n, webhook_id, at, duration_ms, response_status, response_body, error)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (org_id, delivery_id, n) DO NOTHING`
	_, err := tx.Exec(ctx, q, d.Org, d.ID, d.Attempts, d.WebhookID, r.at, r.took.Milliseconds(), number(r.status),
		db.Null(r.body), db.Null(r.fault))
	if err != nil {
		return fmt.Errorf("insert attempt: %w", err)
	}
	return nil
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
