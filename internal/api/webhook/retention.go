package webhook

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/platform/db"
)

// DeleteBefore deletes old data, a batch per transaction: deliveries that finished before a time, held deliveries that were
// created before it, their attempts, and deleted endpoints. It returns the number of deliveries.
func (s *Service) DeleteBefore(ctx context.Context, before time.Time) (gone int64, err error) {
	for {
		var n int
		err := s.cfg.DB.Tx(ctx, func(tx db.Querier) (err error) {
			n, err = deleteBatchBefore(ctx, tx, db.At(before))
			return err
		})
		if gone += int64(n); err != nil || n == 0 {
			return gone, joinDeleteErrors(err, s.deleteEndpointsBefore(ctx, db.At(before)))
		}
	}
}

func joinDeleteErrors(err, other error) error {
	if err == nil {
		err = other
	}
	if err != nil {
		return fmt.Errorf("sweep webhooks: %w", err)
	}
	return nil
}

func deleteBatchBefore(ctx context.Context, tx db.Querier, before db.Time) (int, error) {
	// tenant: a sweep over all organisations
	const ended = `SELECT ` + deliveryColumns + ` FROM webhook_deliveries WHERE finished_at < $1 LIMIT 200`
	all, err := listDeliveries(ctx, tx, ended, before)
	if err == nil && len(all) == 0 {
		// tenant: a sweep over all organisations
		const waiting = `SELECT ` + deliveryColumns + ` FROM webhook_deliveries WHERE held AND created_at < $1 LIMIT 200`
		all, err = listDeliveries(ctx, tx, waiting, before)
	}
	if err != nil {
		return 0, err
	}
	for _, d := range all {
		if _, err := tx.Exec(ctx, `DELETE FROM webhook_attempts WHERE org_id = $1 AND delivery_id = $2`, d.Org, d.ID); err != nil {
			return 0, err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM webhook_deliveries WHERE org_id = $1 AND id = $2`, d.Org, d.ID); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}

func (s *Service) deleteEndpointsBefore(ctx context.Context, before db.Time) error {
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		// tenant: a sweep over all organisations
		const q = `DELETE FROM webhooks WHERE deleted_at < $1 AND NOT EXISTS (SELECT 1 FROM webhook_deliveries d
			WHERE d.org_id = webhooks.org_id AND d.webhook_id = webhooks.id)`
		_, err := tx.Exec(ctx, q, before)
		return err
	})
}
