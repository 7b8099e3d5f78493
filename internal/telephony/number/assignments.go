package number

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// IDsOfFlows returns the ids of the numbers that are assigned to flows, by the flow's id.
func (s *Service) IDsOfFlows(ctx context.Context, q db.Querier, org string, flows []string) (map[string][]string, error) {
	return assignedIDs(ctx, q, org, "flow_id", flows)
}

// IDsOfQueue returns the ids of the numbers that are assigned to a queue.
func (s *Service) IDsOfQueue(ctx context.Context, q db.Querier, org, queue string) ([]string, error) {
	found, err := assignedIDs(ctx, q, org, "queue_id", []string{queue})
	return found[queue], err
}

// MoveQueue reassigns the numbers of one queue to another.
func (s *Service) MoveQueue(ctx context.Context, tx db.Querier, org, from, to string) error {
	const text = `UPDATE numbers SET queue_id = $3, updated_at = $4 WHERE org_id = $1 AND queue_id = $2`
	if _, err := tx.Exec(ctx, text, org, from, to, db.At(s.now())); err != nil {
		return fmt.Errorf("move numbers to another queue: %w", err)
	}
	db.OnCommit(tx, func() { s.bus.Publish(Changed, nil) })
	return nil
}

// AssignToFlow assigns numbers to a flow, and returns the ids that the organisation does not have.
func (s *Service) AssignToFlow(ctx context.Context, tx db.Querier, org, flow string, ids []string) (missing []string, err error) {
	for _, id := range ids {
		n, err := getNumber(ctx, tx, org, id)
		if db.IsNone(err) || err == nil && n.Status == Released {
			missing = append(missing, id)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find number: %w", err)
		}
		n.AssignedTo, n.UpdatedAt = Assignment{Type: "flow", ID: &flow}, db.At(s.now())
		if err := updateNumber(ctx, tx, n); err != nil {
			return nil, fmt.Errorf("assign number: %w", err)
		}
		s.publishChanged(tx, n.Number)
	}
	return missing, nil
}

// FindActive returns the organisation's active number, including one of its sandbox; ok is false if there is none.
func (s *Service) FindActive(ctx context.Context, org, e164 string) (n Number, ok bool, err error) {
	n, err = activeOfOrg(ctx, s.db.Read(ctx), org, e164)
	if db.IsNone(err) {
		return n, false, nil
	}
	return n, err == nil, err
}

// FallingBackTo returns the ids of the numbers whose fallback is a destination, at most 100.
func (s *Service) FallingBackTo(ctx context.Context, q db.Querier, org, to string) (ids []string, err error) {
	const text = `SELECT id FROM numbers WHERE org_id = $1 AND fallback = $2
		AND status NOT IN ('released', 'releasing', 'failed', 'port_failed')
		ORDER BY id LIMIT 100`
	err = db.ForEach(ctx, q, "find numbers that fall back", text, []any{org, to}, func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}
