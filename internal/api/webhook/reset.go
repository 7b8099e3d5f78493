package webhook

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// Abandon cancels the attempts of an organisation that are in progress on this node; see job.Runner.
func (s *Service) Abandon(org string) { s.runner.Abandon(org) }

// Reset resets the endpoints of an organisation after their deliveries are deleted: nothing is held, no failures are
// counted. Paused and disabled endpoints keep their status. Rows of deleted endpoints are removed; their number is
// returned.
func (s *Service) Reset(ctx context.Context, tx db.Querier, org string) (gone int64, err error) {
	r, err := tx.Exec(ctx, `DELETE FROM webhooks WHERE org_id = $1 AND deleted_at IS NOT NULL`, org)
	if err != nil {
		return 0, fmt.Errorf("remove deleted webhooks: %w", err)
	}
	if gone, err = r.RowsAffected(); err != nil {
		return 0, err
	}
	const q = `UPDATE webhooks SET holding = CASE WHEN status IN ('active', 'failing') THEN FALSE ELSE holding END,
			status = CASE WHEN status = 'failing' THEN 'active' ELSE status END, consecutive_failures = 0, failing_since = NULL,
			last_success_at = NULL, last_failure_at = NULL, fail_times = 0
		WHERE org_id = $1`
	if _, err := tx.Exec(ctx, q, org); err != nil {
		return 0, fmt.Errorf("reset webhooks: %w", err)
	}
	return gone, bumpVersion(ctx, tx, org)
}
