package trunk

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// Lines: of the nodes on one PostgreSQL database, one registers a trunk at its carrier. It holds the trunk's line as long as it serves.

// HoldLine makes this node the one that registers a trunk, unless another serving node is. It reports whether this node is. On
// SQLite it always is.
func (s *Service) HoldLine(ctx context.Context, trunkID string) (held bool, err error) {
	if !s.sharesLines() {
		return true, nil
	}
	const q = `INSERT INTO trunk_lines (trunk_id, node) VALUES ($1, $2)
		ON CONFLICT (trunk_id) DO UPDATE SET node = excluded.node, status = CASE WHEN trunk_lines.node = excluded.node
		THEN trunk_lines.status ELSE '' END
		WHERE trunk_lines.node = excluded.node
			OR NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = trunk_lines.node AND n.state = 'serving')`
	err = s.db.Tx(ctx, func(tx db.Querier) error {
		r, err := tx.Exec(ctx, q, trunkID, s.node)
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		held = n > 0
		return err
	})
	if err != nil {
		return false, fmt.Errorf("hold the line of trunk %s: %w", trunkID, err)
	}
	return held, nil
}

// ReleaseLine lets another node register a trunk. It does nothing if this node does not hold the line.
func (s *Service) ReleaseLine(ctx context.Context, trunkID string) error {
	if !s.sharesLines() {
		return nil
	}
	return s.db.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, `DELETE FROM trunk_lines WHERE trunk_id = $1 AND node = $2`, trunkID, s.node)
		return err
	})
}

// StoreLine stores the state of a registration of this node, for the other nodes.
func (s *Service) StoreLine(ctx context.Context, trunkID string, r Registration) error {
	if !s.sharesLines() {
		return nil
	}
	const q = `UPDATE trunk_lines SET status = $3, expires_at = $4, error = $5 WHERE trunk_id = $1 AND node = $2`
	var why db.Null
	if r.LastError != nil {
		why = db.Null(*r.LastError)
	}
	return s.db.Tx(ctx, func(tx db.Querier) error {
		_, err := tx.Exec(ctx, q, trunkID, s.node, r.Status, r.ExpiresAt, why)
		return err
	})
}

// ReadLine sets the state of a trunk's registration to what the node that holds its line has stored.
func (s *Service) ReadLine(ctx context.Context, trunkID string) error {
	const q = `SELECT status, expires_at, error FROM trunk_lines WHERE trunk_id = $1 AND status <> ''`
	var r Registration
	var expires db.Time
	var why db.Null
	err := s.db.Read(ctx).QueryRow(ctx, q, trunkID).Scan(&r.Status, &expires, &why)
	if db.IsNone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the line of trunk %s: %w", trunkID, err)
	}
	r.ExpiresAt, r.LastError = expires, why.Ptr()
	s.SetRegistration(trunkID, r)
	return nil
}

// sharesLines reports whether other nodes may register the same trunks.
func (s *Service) sharesLines() bool { return s.node != "" && s.db.Name() == "postgres" }
