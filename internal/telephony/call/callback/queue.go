package callback

import (
	"context"
	"errors"
	"fmt"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
)

const callbackWaitingAgent = "waiting_agent"

// QueueCallback reports a state change of a callback that a queue dials when an agent is free. Origin is the id of
// the call in which the caller requested it.
type QueueCallback struct {
	Org, QueueID, Origin string
	Status               string
	To, From             string // set when the callback is accepted, as is MaxAttempts
	MaxAttempts          int
	DialCallID           string // id of the placed call while the callback is dialing
	Result               string // of the attempt that ended; "" if none did
	CountsAsAttempt      bool   // the attempt counts: an agent had answered
	At                   time.Time
}

// WriteQueueCallback inserts or updates the callback of a queue. If another callback dials the same number, the error
// is a conflict (db.IsConflict). A change without To for a callback that does not exist does nothing.
func (s *Service) WriteQueueCallback(ctx context.Context, tx db.Querier, x QueueCallback) error {
	c, err := queueCallback(ctx, tx, x.Org, x.Origin)
	var none *op.Error
	if errors.As(err, &none) {
		if x.To == "" {
			return nil
		}
		return s.insertQueueCallback(ctx, tx, x)
	}
	if err != nil {
		return fmt.Errorf("find callback: %w", err)
	}
	from := c.Status
	c.apply(x, db.At(s.cfg.Clock.Now()))
	const text = `UPDATE callbacks SET queue_id = $3, scheduled_at = $4 WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, text, x.Org, c.ID, x.QueueID, c.ScheduledAt); err != nil {
		return fmt.Errorf("write callback: %w", err)
	}
	_, err = c.updateStatus(ctx, tx, x.Org, from, s.cfg.Clock.Now())
	return err
}

// apply sets the callback's status and attempts from the change.
func (c *Callback) apply(x QueueCallback, now db.Time) {
	if last := len(c.Attempts) - 1; x.Result != "" && last >= 0 && c.Attempts[last].Result == callbackDialing {
		c.Attempts[last].Result = x.Result
		if !x.CountsAsAttempt { // the customer was not called
			c.Attempts = c.Attempts[:last]
		}
	}
	c.Status, c.callID = x.Status, ""
	switch x.Status {
	case callbackDialing:
		c.callID = x.DialCallID
		c.Attempts = append(c.Attempts, CallbackAttempt{At: now, CallID: x.DialCallID, Result: callbackDialing})
	case callbackRetry:
		c.ScheduledAt = db.At(x.At)
	}
}

func (s *Service) insertQueueCallback(ctx context.Context, tx db.Querier, x QueueCallback) error {
	now := s.cfg.Clock.Now()
	sandbox, err := call.IsSandbox(ctx, tx, x.Org, x.Origin)
	if err != nil {
		return fmt.Errorf("find the origin call of a callback: %w", err)
	}
	nobody := ""
	c := Callback{ID: db.NewID("cbk"), ToNumber: x.To, UserID: &nobody, ScheduledAt: db.At(now), Status: callbackWaitingAgent,
		MaxAttempts: x.MaxAttempts,
		Origin:      "queue", OriginCallID: &x.Origin, CreatedAt: db.At(now), from: x.From, windowEnd: now.Add(defaultWindow),
		sandbox: sandbox}
	if err := insertCallback(ctx, tx, x.Org, c); err != nil {
		return err
	}
	const text = `UPDATE callbacks SET queue_id = $3 WHERE org_id = $1 AND id = $2`
	_, err = tx.Exec(ctx, text, x.Org, c.ID, x.QueueID)
	return err
}

func queueCallback(ctx context.Context, q db.Querier, org, origin string) (Callback, error) {
	c, err := scanCallback(q.QueryRow(ctx, `SELECT `+callbackColumns+
		` FROM callbacks WHERE org_id = $1 AND origin_call_id = $2 AND origin = 'queue'
		AND finished_at IS NULL ORDER BY id DESC LIMIT 1`, org, origin))
	if db.IsNone(err) {
		return c, op.NotFound("callback")
	}
	return c, err
}

// QueueCallbackPlacement returns the call to place for a callback of a queue. The agent's phones ring first.
func (s *Service) QueueCallbackPlacement(ctx context.Context, org, origin, callID, agent string) (call.Placement, error) {
	c, err := queueCallback(ctx, s.cfg.DB.Read(ctx), org, origin)
	if err != nil {
		return call.Placement{}, fmt.Errorf("find callback: %w", err)
	}
	return call.Placement{Org: org, ID: callID, Sandbox: c.sandbox, Source: "callback", UserID: agent, To: c.ToNumber, From: c.from,
		MaxDuration: call.MaxCallSeconds * time.Second, Record: "default", Machine: "off", Reason: textOf(c.Reason)}, nil
}

// cancelQueueEntry removes the queue entry of a canceled callback.
func (s *Service) cancelQueueEntry(ctx context.Context, tx db.Querier, org string, c Callback) error {
	if c.QueueID == nil || c.OriginCallID == nil {
		return nil
	}
	for _, o := range s.observers {
		if err := o.CallbackCanceled(ctx, tx, org, *c.OriginCallID); err != nil {
			return err
		}
	}
	return nil
}
