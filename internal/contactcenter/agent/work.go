package agent

import (
	"context"
	"time"

	"soniq/internal/platform/db"
)

// What the switch tells of agents. Each is written, and told, in the caller's transaction.

// WrapUp gives an agent time after a call before the next one is offered; a time that is past ends it. It is from the end of the call on
// that they are idle, even where it was over before its presence was told.
func (s *Service) WrapUp(ctx context.Context, tx db.Querier, org, id string, until time.Time) error {
	if err := ensure(ctx, tx, org, id, db.At(s.Now())); err != nil {
		return err
	}
	const text = `UPDATE agents SET wrap_up_until = $3, missed_streak = 0, idle_since = $4 WHERE org_id = $1 AND user_id = $2`
	if _, err := tx.Exec(ctx, text, org, id, db.At(until), db.At(s.Now())); err != nil {
		return err
	}
	return s.SettleIn(ctx, tx, org, []string{id})
}

// Missed counts an offer that an agent did not answer. From limit in a row on the agent is away until a time, and returns by itself.
// A limit of 0 never sends anybody away.
func (s *Service) Missed(ctx context.Context, tx db.Querier, org, id string, limit int, until time.Time) error {
	if err := ensure(ctx, tx, org, id, db.At(s.Now())); err != nil {
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
	return s.SettleIn(ctx, tx, org, []string{id})
}

// Answered ends the count of offers that were missed. The agent has not been idle since before it: the end of the call may be seen in their
// telephones before WrapUp tells of it.
func (s *Service) Answered(ctx context.Context, tx db.Querier, org, id string) error {
	now := db.At(s.Now())
	if err := ensure(ctx, tx, org, id, now); err != nil {
		return err
	}
	const text = `UPDATE agents SET missed_streak = 0, idle_since = $3 WHERE org_id = $1 AND user_id = $2`
	if _, err := tx.Exec(ctx, text, org, id, now); err != nil {
		return err
	}
	return s.SettleIn(ctx, tx, org, []string{id})
}

// MissedStreak is how many offers in a row the agent did not answer.
func (x *State) MissedStreak() int { return x.row.streak }

// RemoveUser forgets what a removed user had chosen. It is called after the user is marked as removed, or before.
func (s *Service) RemoveUser(ctx context.Context, tx db.Querier, org, id string) error {
	return remove(ctx, tx, org, id)
}
