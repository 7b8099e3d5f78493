package queue

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/personal"
)

// EraseCall removes the caller's number and contact from the entries of a call. The entries stay for the statistics
// of queues.
func (s *Service) EraseCall(ctx context.Context, tx db.Querier, org, call string) error {
	const text = `UPDATE queue_entries SET from_number = 'anonymous', contact = NULL WHERE org_id = $1 AND call_id = $2`
	if _, err := tx.Exec(ctx, text, org, call); err != nil {
		return fmt.Errorf("erase caller of queue: %w", err)
	}
	return nil
}

// ExportCall exports the entries of a call in queues.
func (s *Service) ExportCall(ctx context.Context, q db.Querier, org, call string, w personal.Writer) error {
	const text = `SELECT * FROM queue_entries WHERE org_id = $1 AND call_id = $2 ORDER BY id`
	return personal.Rows(ctx, q, w, "queue_entries", text, org, call)
}
