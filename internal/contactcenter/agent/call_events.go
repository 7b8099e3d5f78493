package agent

import (
	"context"
	"time"

	"soniq/internal/platform/db"
)

// Events of the switch and the queues that change an agent. Each is stored, and its presence published, in the
// caller's transaction.

// WrapUpTime is an agent's time after a call of a queue. An Until in the past means none. If AwaitsDisposition is true, it waits for the
// disposition of the call: Until is its latest end, and the choice to be available does not end it.
type WrapUpTime struct {
	CallID            string
	Until             time.Time
	AwaitsDisposition bool
}

// StartWrapUp gives an agent time after a call before the next offer. The agent is idle since now, the end of the call, even if the
// agent's presence during the call is published later.
func (s *Service) StartWrapUp(ctx context.Context, tx db.Querier, org, id string, w WrapUpTime) error {
	if err := ensureRow(ctx, tx, org, id, db.At(s.cfg.Clock.Now())); err != nil {
		return err
	}
	const text = `UPDATE agents SET wrap_up_until = $3, missed_streak = 0, idle_since = $4, wrap_up_call_id = $5, ended_call_id = $6
		WHERE org_id = $1 AND user_id = $2`
	awaited := ""
	if w.AwaitsDisposition {
		awaited = w.CallID
	}
	if _, err := tx.Exec(ctx, text, org, id, db.At(w.Until), db.At(s.cfg.Clock.Now()), db.Null(awaited), db.Null(w.CallID)); err != nil {
		return err
	}
	return s.PublishPresence(ctx, tx, org, []string{id})
}

// LimitWrapUp sets the end of a wrap-up that waits for the disposition of a call. It returns false if the agent's wrap-up does not.
func (s *Service) LimitWrapUp(ctx context.Context, tx db.Querier, org, id, callID string, until time.Time) (bool, error) {
	const text = `UPDATE agents SET wrap_up_until = $4, wrap_up_call_id = NULL WHERE org_id = $1 AND user_id = $2 AND wrap_up_call_id = $3`
	r, err := tx.Exec(ctx, text, org, id, callID, db.At(until))
	if err != nil {
		return false, err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return false, err
	}
	return true, s.PublishPresence(ctx, tx, org, []string{id})
}

// OfferMissed counts an offer that an agent did not answer. From limit in a row the agent is away until the given
// time, and is available again afterwards. A limit of 0 means no limit.
func (s *Service) OfferMissed(ctx context.Context, tx db.Querier, org, id string, limit int, until time.Time) error {
	if err := ensureRow(ctx, tx, org, id, db.At(s.cfg.Clock.Now())); err != nil {
		return err
	}
	const count = `UPDATE agents SET missed_streak = missed_streak + 1 WHERE org_id = $1 AND user_id = $2 RETURNING missed_streak`
	var streak int
	if err := tx.QueryRow(ctx, count, org, id).Scan(&streak); err != nil {
		return err
	}
	if limit > 0 && streak >= limit {
		const pause = `UPDATE agents SET missed_streak = 0, paused_until = $3 WHERE org_id = $1 AND user_id = $2`
		if _, err := tx.Exec(ctx, pause, org, id, db.At(until)); err != nil {
			return err
		}
	}
	return s.PublishPresence(ctx, tx, org, []string{id})
}

// OfferAnswered resets the count of missed offers. It also sets the start of idle time to now, because the end of the
// call may show in the legs before StartWrapUp records it.
func (s *Service) OfferAnswered(ctx context.Context, tx db.Querier, org, id string) error {
	now := db.At(s.cfg.Clock.Now())
	if err := ensureRow(ctx, tx, org, id, now); err != nil {
		return err
	}
	const text = `UPDATE agents SET missed_streak = 0, idle_since = $3, ended_call_id = NULL WHERE org_id = $1 AND user_id = $2`
	if _, err := tx.Exec(ctx, text, org, id, now); err != nil {
		return err
	}
	return s.PublishPresence(ctx, tx, org, []string{id})
}

// MissedStreak returns how many offers in a row the agent did not answer.
func (x *State) MissedStreak() int { return x.row.missedStreak }

// RemoveUser deletes the stored choice of a removed user. It may be called before or after the user is marked as
// removed.
func (s *Service) RemoveUser(ctx context.Context, tx db.Querier, org, id string) error {
	return deleteRow(ctx, tx, org, id)
}
