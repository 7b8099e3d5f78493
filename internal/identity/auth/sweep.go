package auth

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/platform/db"
)

// Sweep deletes expired codes and tokens, grants without tokens, and registered clients that were not used for
// clientLife.
func (o *OAuth) Sweep(ctx context.Context) (gone int64, err error) {
	now := o.keys.now()
	yesterday, unused := db.At(now.Add(-24*time.Hour)), db.At(now.Add(-clientLife))
	err = o.keys.db.Tx(ctx, func(tx db.Querier) error {
		gone = 0
		return sweep(ctx, tx, &gone, yesterday, unused)
	})
	return gone, err
}

func sweep(ctx context.Context, q db.Querier, gone *int64, yesterday, unused db.Time) error {
	// tenant: expired rows of all organisations are deleted
	if err := db.Affected(ctx, q, gone, `DELETE FROM oauth_codes WHERE expires_at < $1`, yesterday); err != nil {
		return fmt.Errorf("delete codes: %w", err)
	}
	// tenant: as above
	if err := db.Affected(ctx, q, gone, `DELETE FROM oauth_tokens WHERE expires_at < $1`, yesterday); err != nil {
		return fmt.Errorf("delete tokens: %w", err)
	}
	const idle = `DELETE FROM oauth_grants WHERE created_at < $1
		AND NOT EXISTS (SELECT 1 FROM oauth_tokens t WHERE t.org_id = oauth_grants.org_id AND t.grant_id = oauth_grants.id)`
	if err := db.Affected(ctx, q, gone, idle, yesterday); err != nil {
		return fmt.Errorf("delete grants: %w", err)
	}
	// tenant: clients belong to no organisation; a client with a grant is kept
	const clients = `DELETE FROM oauth_clients WHERE used_at < $1 AND NOT EXISTS (SELECT 1 FROM oauth_grants g WHERE g.client_id = oauth_clients.id)`
	if err := db.Affected(ctx, q, gone, clients, unused); err != nil {
		return fmt.Errorf("delete clients: %w", err)
	}
	return nil
}
