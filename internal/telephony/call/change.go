package call

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/observe"
)

// Change writes a change of a call in progress and its events in one transaction. It does nothing if the revision is
// not higher than the stored one, or if the call has ended. The commit does not wait for the disk (db.TxRelaxed).
func (s *Service) Change(ctx context.Context, c Change) error {
	return changeError(c.ID, s.cfg.DB.TxRelaxed(ctx, func(tx db.Querier) error { return s.writeChange(ctx, tx, c) }))
}

// ChangeAsync is Change without waiting for the commit. Later writes are ordered after it. wait returns once it is
// committed or has failed. If the call's insert is still pending, the change is written with it.
func (s *Service) ChangeAsync(ctx context.Context, c Change) (wait func() error) {
	if wait, ok := s.pendingInserts.join(c); ok {
		id := c.ID
		return func() error { return changeError(id, wait()) }
	}
	written, id := s.cfg.DB.TxAsync(ctx, func(tx db.Querier) error { return s.writeChange(ctx, tx, c) }), c.ID
	return func() error { return changeError(id, written()) }
}

func changeError(id string, err error) error {
	if err != nil {
		return fmt.Errorf("change call %s: %w", id, err)
	}
	return nil
}

func (s *Service) writeChange(ctx context.Context, tx db.Querier, c Change) error {
	if c.Done != nil {
		db.OnCommit(tx, c.Done)
	}
	queue, newer, err := updateState(ctx, tx, c)
	if err != nil || !newer {
		return err
	}
	return s.writeChangeParts(ctx, tx, c, queue)
}

// writeChangeParts writes everything of a change except the call's row. queue is the current or last queue of the
// call.
func (s *Service) writeChangeParts(ctx context.Context, tx db.Querier, c Change, queue string) error {
	if err := writeLegs(ctx, tx, c.Org, c.ID, c.Legs); err != nil {
		return err
	}
	if len(c.Legs) > 0 {
		s.notifyLegs(tx, c.Org, c.ID, usersOf(c.Legs))
	}
	if queue != "" {
		if err := s.observers.agentsLeft(ctx, tx, c); err != nil {
			return err
		}
	}
	if err := writeMonitors(ctx, tx, c.Org, c.ID, c.Monitors); err != nil {
		return err
	}
	if err := s.observers.writeRecordings(ctx, tx, c); err != nil {
		return err
	}
	if err := s.writeDialogs(ctx, tx, c); err != nil {
		return err
	}
	for _, e := range c.Events {
		if err := s.publishChangeEvent(ctx, tx, c, queue, e); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) publishChangeEvent(ctx context.Context, tx db.Querier, c Change, queue string, e event.Payload) (err error) {
	a, answered := e.(event.CallAnswered)
	if answered {
		if e, err = s.withQueueWait(ctx, tx, c.Org, queue, a); err != nil {
			return err
		}
	}
	if err := s.cfg.Outbox.Publish(ctx, tx, c.Org, e); err != nil || !answered {
		return err
	}
	return observe.Each(s.observers.answers, func(o AnswerObserver) error { return o.CallAnswered(ctx, tx, c.Org, c.ID) })
}

// updateState updates the call's row. It reports whether the change was newer than the row, and the queue in the row.
func updateState(ctx context.Context, tx db.Querier, c Change) (queue string, newer bool, err error) {
	const q = `UPDATE calls SET revision = $3, ` + stateColumns + `, status = $19, stage = $20, hold_seconds = $21, held_since = $22,
			recording_state = $23, ring_seconds = $24
		WHERE org_id = $1 AND id = $2 AND revision < $3 AND ended_at IS NULL RETURNING queue_id`
	args := append([]any{c.Org, c.ID, c.Revision}, stateArgs(c.Row)...)
	args = append(args, string(c.Row.Status), c.Row.Stage, seconds(c.Row.Hold), db.At(c.Row.HeldSince), c.Row.recordingState(),
		seconds(c.Row.Ring))
	var in db.Null
	err = tx.QueryRow(ctx, q, args...).Scan(&in)
	if db.IsNone(err) {
		return "", false, nil
	}
	return string(in), err == nil, err
}

// stateColumns are set from stateArgs. The first placeholder is $4.
const stateColumns = `ringing_at = COALESCE($4, ringing_at), answered_at = $5, muted = $6, answered_by = $7, agent_id = $8,
	agent_name = $9, agent_extension = $10, user_id = COALESCE($11, user_id), device_id = COALESCE($12, device_id),
	trunk_id = COALESCE($13, trunk_id), transfer = $14, transferred_to = $15, machine = $16, recording_id = COALESCE($17, recording_id),
	consent = COALESCE($18, consent)`

func stateArgs(x State) []any {
	var transfer any
	if x.Transfer != nil {
		transfer = db.AsJSON(x.Transfer)
	}
	var machine any
	if x.Machine != nil {
		machine = *x.Machine
	}
	return []any{db.At(x.RingingAt), db.At(x.AnsweredAt), x.Muted, db.Null(x.AnsweredBy), db.Null(x.Agent.UserID),
		db.Null(x.Agent.Name), db.Null(x.Agent.Extension), db.Null(x.UserID), db.Null(x.DeviceID), db.Null(x.TrunkID), transfer,
		db.Null(x.TransferredTo), machine, db.Null(x.RecordingID), db.Null(x.Consent)}
}

func (x State) recordingState() string {
	if x.Recording == "" {
		return "off"
	}
	return x.Recording
}

// writeMonitors inserts or updates the supervisors on a call by id.
func writeMonitors(ctx context.Context, tx db.Querier, org, callID string, all []MonitorState) error {
	const q = `INSERT INTO monitors (org_id, id, call_id, supervisor_id, mode, status, started_at, ended_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (org_id, id) DO UPDATE SET mode = excluded.mode, status = excluded.status, ended_at = excluded.ended_at`
	for _, m := range all {
		_, err := tx.Exec(ctx, q, org, m.ID, callID, m.SupervisorID, m.Mode, m.Status, db.At(m.StartedAt), db.At(m.EndedAt))
		if err != nil {
			return fmt.Errorf("write monitor %s: %w", m.ID, err)
		}
	}
	return nil
}

func endMonitors(ctx context.Context, tx db.Querier, e Ended) error {
	const q = `UPDATE monitors SET status = 'ended', ended_at = $3 WHERE org_id = $1 AND call_id = $2 AND ended_at IS NULL`
	_, err := tx.Exec(ctx, q, e.Org, e.ID, db.At(e.At))
	return err
}
