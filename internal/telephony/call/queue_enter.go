package call

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// EnterQueue stores the queue of a call in the transaction tx. The row keeps the last queue.
func (s *Service) EnterQueue(ctx context.Context, tx db.Querier, org, id, queue string) error {
	const text = `UPDATE calls SET queue_id = $3 WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, text, org, id, queue); err != nil {
		return fmt.Errorf("set queue of call %s: %w", id, err)
	}
	return nil
}

// EnterFlow stores the flow and its version in the call's row in the transaction tx. The row keeps the first flow.
func (s *Service) EnterFlow(ctx context.Context, tx db.Querier, org, id, flow string, version int) error {
	const text = `UPDATE calls SET flow_id = $3, flow_version = $4 WHERE org_id = $1 AND id = $2 AND flow_id IS NULL`
	if _, err := tx.Exec(ctx, text, org, id, flow, version); err != nil {
		return fmt.Errorf("set flow of call %s: %w", id, err)
	}
	return nil
}

// SetVoicemail stores the id of the message that was left in a call in the transaction tx. The row keeps the last
// one.
func (s *Service) SetVoicemail(ctx context.Context, tx db.Querier, org, id, voicemail string) error {
	const text = `UPDATE calls SET voicemail_id = $3 WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, text, org, id, voicemail); err != nil {
		return fmt.Errorf("set voicemail of call %s: %w", id, err)
	}
	return nil
}
