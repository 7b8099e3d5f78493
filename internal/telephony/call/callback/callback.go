// Package callback stores callbacks, which are calls to be placed later, and dials them until one is answered. It also has
// the API operations on them.
package callback

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/number"
)

// The states of a callback. The last three are final.
const (
	callbackScheduled = "scheduled"
	callbackDialing   = "dialing"
	callbackRetry     = "retry_wait"
	callbackCompleted = "completed"
	callbackFailed    = "failed"
	callbackCanceled  = "canceled"
)

// Callback is a call to be placed later. The phones of the user, or of an agent of the queue, ring first, then the
// number is dialled.
type Callback struct {
	ID           string            `json:"id" example:"cbk_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	ToNumber     string            `json:"to_number"`
	Contact      *event.Contact    `json:"contact"`
	QueueID      *string           `json:"queue_id"`
	UserID       *string           `json:"user_id"`
	FlowID       *string           `json:"flow_id"`
	ScheduledAt  db.Time           `json:"scheduled_at"`
	WindowEnd    *db.Time          `json:"window_end"`
	Status       string            `json:"status" enum:"scheduled,dialing,waiting_agent,completed,retry_wait,failed,canceled"`
	Attempts     []CallbackAttempt `json:"attempts" nullable:"false"`
	MaxAttempts  int               `json:"max_attempts"`
	Origin       string            `json:"origin" enum:"api,mcp,queue,missed_call"`
	OriginCallID *string           `json:"origin_call_id"`
	Reason       *string           `json:"reason"`
	CreatedAt    db.Time           `json:"created_at"`

	from      string
	callID    string // call of the attempt in progress; "" if none
	windowEnd time.Time
	sandbox   bool
}

// CallbackAttempt records one attempt to dial a callback.
type CallbackAttempt struct {
	At     db.Time `json:"at"`
	CallID string  `json:"call_id"`
	Result string  `json:"result" doc:"dialing while it runs, then how the call ended: completed, no_answer, busy, failed, canceled" example:"no_answer"`
}

// defaultWindow is how long after scheduled_at new attempts may begin, unless the request sets window_end.
const defaultWindow = 24 * time.Hour

// retryDelay returns the delay before the next attempt: 2 min, 10 min, 30 min, then 1 h.
func retryDelay(attempts int) time.Duration {
	all := []time.Duration{2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour}
	return all[min(max(attempts-1, 0), len(all)-1)]
}

// scanner is the common interface of QueryRow and Rows.
type scanner interface{ Scan(to ...any) error }

// textOf returns the text that p points to, or "".
func textOf(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

const callbackColumns = `id, to_number, user_id, from_number, reason, scheduled_at, window_end, window_given, status, call_id, attempts,
	max_attempts, origin, origin_call_id, sandbox, created_at, queue_id, flow_id`

func scanCallback(r scanner) (c Callback, err error) {
	var user, from, reason, callID, origin, queue, flow db.Null
	var until db.Time
	var given bool
	var attempts db.JSON[[]CallbackAttempt]
	err = r.Scan(&c.ID, &c.ToNumber, &user, &from, &reason, &c.ScheduledAt, &until, &given, &c.Status, &callID, &attempts, &c.MaxAttempts,
		&c.Origin, &origin, &c.sandbox, &c.CreatedAt, &queue, &flow)
	c.QueueID, c.FlowID = queue.Ptr(), flow.Ptr()
	c.UserID, c.Reason, c.OriginCallID, c.Attempts = user.Ptr(), reason.Ptr(), origin.Ptr(), attempts.V
	c.from, c.callID, c.windowEnd = string(from), string(callID), until.Time
	if given {
		c.WindowEnd = until.Ptr()
	}
	if c.Attempts == nil {
		c.Attempts = []CallbackAttempt{}
	}
	return c, err
}

func getCallback(ctx context.Context, q db.Querier, org, id string) (Callback, error) {
	c, err := scanCallback(q.QueryRow(ctx, `SELECT `+callbackColumns+` FROM callbacks WHERE org_id = $1 AND id = $2`, org, id))
	if db.IsNone(err) {
		return c, op.NotFound("callback")
	}
	return c, err
}

func insertCallback(ctx context.Context, tx db.Querier, org string, c Callback) error {
	const q = `INSERT INTO callbacks (org_id, id, to_number, user_id, from_number, reason, scheduled_at, window_end, window_given, status,
			attempts, max_attempts, origin, origin_call_id, sandbox, created_at, queue_id, flow_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, '[]', $11, $12, $13, $14, $15, $16, $17)`
	_, err := tx.Exec(ctx, q, org, c.ID, c.ToNumber, textOf(c.UserID), db.Null(c.from), c.Reason, c.ScheduledAt, db.At(c.windowEnd),
		c.WindowEnd != nil, c.Status, c.MaxAttempts, c.Origin, c.OriginCallID, c.sandbox, c.CreatedAt,
		c.QueueID, c.FlowID)
	if err != nil {
		return fmt.Errorf("insert callback: %w", err)
	}
	return nil
}

// updateStatus writes the callback's new state. It returns false if the row no longer has the status from.
func (c Callback) updateStatus(ctx context.Context, tx db.Querier, org, from string, now time.Time) (bool, error) {
	var finished db.Time
	if c.Status == callbackCompleted || c.Status == callbackFailed || c.Status == callbackCanceled {
		finished = db.At(now)
	}
	if c.Status == callbackDialing {
		if err := c.otherSpellingDialing(ctx, tx, org); err != nil {
			return false, err
		}
	}
	const q = `UPDATE callbacks SET status = $4, call_id = $5, attempts = $6, finished_at = $7 WHERE org_id = $1 AND id = $2 AND status = $3`
	r, err := tx.Exec(ctx, q, org, c.ID, from, c.Status, db.Null(c.callID), db.AsJSON(c.Attempts), finished)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// otherSpellingDialing returns a conflict (db.IsConflict) if another callback dials the same telephone under the other spelling of
// its number. The unique index of the table does so for one spelling.
func (c Callback) otherSpellingDialing(ctx context.Context, tx db.Querier, org string) error {
	given, other := number.Spellings(c.ToNumber)
	if given == other {
		return nil
	}
	var busy bool
	const q = `SELECT EXISTS (SELECT 1 FROM callbacks WHERE org_id = $1 AND to_number = $2 AND status = 'dialing' AND id <> $3)`
	if err := tx.QueryRow(ctx, q, org, other, c.ID).Scan(&busy); err != nil {
		return fmt.Errorf("find callback of the other spelling: %w", err)
	}
	if busy {
		return db.ErrConflict
	}
	return nil
}
