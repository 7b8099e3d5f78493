package sms

import (
	"context"
	"errors"
	"fmt"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
)

// maxCarrierWait is the time after which a message fails if no carrier accepts it.
const maxCarrierWait = 4 * time.Hour

// dueTime returns the time from which a message could have been sent.
func (m Message) dueTime() time.Time {
	if m.ScheduledAt.After(m.CreatedAt.Time) {
		return m.ScheduledAt.Time
	}
	return m.CreatedAt.Time
}

// handleUnsent handles a message that was certainly not sent, or not all of its parts. Another carrier is tried, or
// the same one again.
func (s *Service) handleUnsent(ctx context.Context, t sendAttempt, m Message, r Result, cause error) error {
	old := s.cfg.Clock.Now().Sub(m.dueTime()) > maxCarrierWait
	var busy *BusyError
	switch {
	case errors.As(cause, &busy) && old:
		s.saveWithJob(ctx, m, sending, failedResult("rate_limited", "the carrier did not take the message in four hours"))
		return nil
	case busy != nil:
		err := s.requeue(ctx, m, r, "", nil)
		return errors.Join(&job.Retry{After: busy.After, NotCounted: true, Cause: cause}, err)
	}
	next, tried, err := s.alternative(ctx, t, m, r)
	switch {
	case err != nil:
		return err
	case next != "":
		return s.requeue(ctx, m, r, next, tried)
	case t.job.Last():
		s.saveWithJob(ctx, m, sending, failedResult("unreachable", "the carrier could not be reached"))
		return nil
	}
	return errors.Join(s.requeue(ctx, m, r, "", nil), cause)
}

// alternative chooses another carrier for a message of which no part was sent.
func (s *Service) alternative(ctx context.Context, t sendAttempt, m Message, r Result) (next string, tried []string, err error) {
	if len(r.IDs) > 0 || s.BuiltIn[m.carrier] != nil {
		return "", nil, nil
	}
	tried = append(append([]string{}, t.args.Tried...), m.carrier)
	next, err = s.cfg.Carriers.Alternative(ctx, m.org, m.FromNumber, m.ToNumber, tried)
	return next, tried, err
}

// requeue sets a message that was not sent back to queued, for its carrier or for the next one.
func (s *Service) requeue(ctx context.Context, m Message, r Result, next string, tried []string) error {
	return s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		m.Status, m.reference = queued, ""
		moved, err := s.changeStatus(ctx, tx, &m, sending)
		if err == nil {
			err = s.saveParts(ctx, tx, m, r.IDs)
		}
		if err != nil || !moved || next == "" {
			return err
		}
		return s.reassign(ctx, tx, m, next, tried)
	})
}

// reassign moves a queued message to another carrier.
func (s *Service) reassign(ctx context.Context, tx db.Querier, m Message, next string, tried []string) error {
	const q = `UPDATE messages SET carrier = $3 WHERE org_id = $1 AND id = $2 AND carrier = $4 AND status = 'queued'`
	r, err := tx.Exec(ctx, q, m.org, m.ID, next, m.carrier)
	if err != nil {
		return fmt.Errorf("divert message %s: %w", m.ID, err)
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return err
	}
	m.carrier = next
	return s.enqueue(ctx, tx, m, tried...)
}

// handleCarrierGone handles a queued message whose carrier no longer exists.
func (s *Service) handleCarrierGone(ctx context.Context, t sendAttempt, m Message) error {
	next, tried, err := s.alternative(ctx, t, m, Result{})
	switch {
	case err != nil:
		return err
	case next == "":
		s.saveWithJob(ctx, m, queued, failedResult("carrier_rejected", "no carrier takes messages to this number any more"))
		return nil
	}
	return s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error { return s.reassign(ctx, tx, m, next, tried) })
}

// stoppedRetry is the time after which a message is tried again while the operator has stopped messages to the outside.
const stoppedRetry = 15 * time.Second

// isStopped reports whether a message to the outside must wait, because the operator has stopped outbound traffic since it was accepted.
func (s *Service) isStopped(ctx context.Context, m Message) (bool, error) {
	if s.BuiltIn[m.carrier] != nil {
		return false, nil
	}
	return s.cfg.Router.OutboundStopped(ctx)
}

// waitStopped keeps a message in the queue. It fails after maxCarrierWait.
func (s *Service) waitStopped(ctx context.Context, m Message, err error) error {
	if err != nil {
		return fmt.Errorf("read whether messages are stopped: %w", err)
	}
	if s.cfg.Clock.Now().Sub(m.dueTime()) > maxCarrierWait {
		s.saveWithJob(ctx, m, queued, failedResult("blocked", "the operator had stopped messages to the outside for four hours"))
		return nil
	}
	return &job.Retry{After: stoppedRetry, NotCounted: true, Cause: errors.New("messages to the outside are stopped by the operator")}
}
