package auth

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/platform/db"
)

// Sweep deletes expired codes and tokens, grants without tokens, and registered clients that were not used for
// clientLife.
func (o *OAuth) Sweep(ctx context.Context) error {
	now := o.keys.now()
	yesterday, unused := db.At(now.Add(-24*time.Hour)), db.At(now.Add(-clientLife))
	return o.keys.db.Tx(ctx, func(tx db.Querier) error { return sweep(ctx, tx, yesterday, unused) })
}

func sweep(ctx context.Context, q db.Querier, yesterday, unused db.Time) error {
	// tenant: expired rows of all organisations are deleted
	if _, err := q.Exec(ctx, `DELETE FROM oauth_codes WHERE expires_at < $1`, yesterday); err != nil {
		return fmt.Errorf("delete codes: %w", err)
	}
	// tenant: as above
	if _, err := q.Exec(ctx, `DELETE FROM oauth_tokens WHERE expires_at < $1`, yesterday); err != nil {
		return fmt.Errorf("delete tokens: %w", err)
	}
	const idle = `DELETE FROM oauth_grants WHERE created_at < $1
		AND NOT EXISTS (SELECT 1 FROM oauth_tokens t WHERE t.org_id = oauth_grants.org_id AND t.grant_id = oauth_grants.id)`
	if _, err := q.Exec(ctx, idle, yesterday); err != nil {
		return fmt.Errorf("delete grants: %w", err)
	}
	// tenant: clients belong to no organisation; a client with a grant is kept
	const clients = `DELETE FROM oauth_clients WHERE used_at < $1 AND NOT EXISTS (SELECT 1 FROM oauth_grants g WHERE g.client_id = oauth_clients.id)`
	if _, err := q.Exec(ctx, clients, unused); err != nil {
		return fmt.Errorf("delete clients: %w", err)
	}
	return nil
}
