package flow

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// NextTurn increments the round-robin counter of a hunt group node and returns its previous value. All nodes of the
// cluster share the counter.
func (s *Service) NextTurn(ctx context.Context, tx db.Querier, org, flow, node string) (before int64, err error) {
	const text = `INSERT INTO flow_turns (org_id, flow_id, node, taken) VALUES ($1, $2, $3, 1)
		ON CONFLICT (org_id, flow_id, node) DO UPDATE SET taken = flow_turns.taken + 1 RETURNING taken - 1`
	if err := tx.QueryRow(ctx, text, org, flow, node).Scan(&before); err != nil {
		return 0, fmt.Errorf("take turn in %s of %s: %w", node, flow, err)
	}
	return before, nil
}
