package auth

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/platform/db"
)

// Sweep forgets codes and tokens that are over, grants that have none left, and registered clients that nobody uses.
func (o *OAuth) Sweep(ctx context.Context) error {
	now := o.keys.now()
	yesterday, unused := db.At(now.Add(-24*time.Hour)), db.At(now.Add(-clientLife))
	return o.keys.db.Tx(ctx, func(tx db.Querier) error { return sweep(ctx, tx, yesterday, unused) })
}

func sweep(ctx context.Context, q db.Querier, yesterday, unused db.Time) error {
	// tenant: what is over is forgotten, whoever it was of
	if _, err := q.Exec(ctx, `DELETE FROM oauth_codes WHERE expires_at < $1`, yesterday); err != nil {
		return fmt.Errorf("forget codes: %w", err)
	}
	// tenant: as above
	if _, err := q.Exec(ctx, `DELETE FROM oauth_tokens WHERE expires_at < $1`, yesterday); err != nil {
		return fmt.Errorf("forget tokens: %w", err)
	}
	const idle = `DELETE FROM oauth_grants WHERE created_at < $1
		AND NOT EXISTS (SELECT 1 FROM oauth_tokens t WHERE t.org_id = oauth_grants.org_id AND t.grant_id = oauth_grants.id)`
	if _, err := q.Exec(ctx, idle, yesterday); err != nil {
		return fmt.Errorf("forget grants: %w", err)
	}
	// tenant: clients belong to nobody; one that anybody's grant names is kept
	const clients = `DELETE FROM oauth_clients WHERE used_at < $1 AND NOT EXISTS (SELECT 1 FROM oauth_grants g WHERE g.client_id = oauth_clients.id)`
	if _, err := q.Exec(ctx, clients, unused); err != nil {
		return fmt.Errorf("forget clients: %w", err)
	}
	return nil
}
