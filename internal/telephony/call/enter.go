package call

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// EnterQueue notes in the caller's transaction that a call is in a queue: the last one it was in stays in its record.
func (s *Service) EnterQueue(ctx context.Context, tx db.Querier, org, id, queue string) error {
	const text = `UPDATE calls SET queue_id = $3 WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, text, org, id, queue); err != nil {
		return fmt.Errorf("note queue of call %s: %w", id, err)
	}
	return nil
}

// EnterFlow notes in the caller's transaction that a call is in a version of a flow: the first one it was in stays in its record.
func (s *Service) EnterFlow(ctx context.Context, tx db.Querier, org, id, flow string, version int) error {
	const text = `UPDATE calls SET flow_id = $3, flow_version = $4 WHERE org_id = $1 AND id = $2 AND flow_id IS NULL`
	if _, err := tx.Exec(ctx, text, org, id, flow, version); err != nil {
		return fmt.Errorf("note flow of call %s: %w", id, err)
	}
	return nil
}

// LeaveMessage notes in the caller's transaction that a message was left in a call: the last one stays in its record.
func (s *Service) LeaveMessage(ctx context.Context, tx db.Querier, org, id, voicemail string) error {
	const text = `UPDATE calls SET voicemail_id = $3 WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, text, org, id, voicemail); err != nil {
		return fmt.Errorf("note message of call %s: %w", id, err)
	}
	return nil
}
