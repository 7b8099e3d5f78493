package smscarrier

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/platform/db"
)

// sweepInterval is the interval at which waiting messages of unavailable carriers are checked.
const sweepInterval = 20 * time.Second

// Sweep reassigns messages that wait for unavailable carriers until the context ends. Other carriers get them, or
// they fail in the end.
func (s *Service) Sweep(ctx context.Context) {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("messages of unavailable SMS carriers not reassigned; next attempt in 20 s", "err", err)
		}
	}
}

func (s *Service) sweep(ctx context.Context) error {
	if err := s.deleteOld(ctx); err != nil {
		return err
	}
	// tenant: the carriers of all organisations that have waiting messages
	const q = `SELECT DISTINCT m.org_id, m.carrier FROM messages m
		LEFT JOIN sms_carriers c ON c.org_id = m.org_id AND c.id = m.carrier
		LEFT JOIN sms_carrier_states h ON h.org_id = m.org_id AND h.carrier_id = m.carrier
		WHERE m.status IN ('queued', 'sending') AND m.carrier LIKE 'smc_%' AND (c.id IS NULL OR NOT c.enabled
		OR COALESCE(h.status, '') <> 'active')`
	rows, err := s.cfg.DB.Read(ctx).Query(ctx, q)
	if err != nil {
		return fmt.Errorf("find carriers with messages that wait: %w", err)
	}
	var all [][2]string
	for rows.Next() {
		var one [2]string
		if err := rows.Scan(&one[0], &one[1]); err != nil {
			rows.Close()
			return err
		}
		all = append(all, one)
	}
	if err := firstError(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, one := range all {
		if err := s.reassign(ctx, one[0], one[1]); err != nil {
			return err
		}
	}
	return nil
}

// deleteOld deletes old receipts, and parts of received messages after 24 hours, because their carrier may no longer be connected. It
// deletes nothing while the clock is not trusted.
func (s *Service) deleteOld(ctx context.Context) error {
	if s.cfg.MayDelete.Check() != nil {
		return nil
	}
	receipts, err := s.cfg.Messages.Sweep(ctx)
	if err != nil {
		return err
	}
	var parts int64
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		// tenant: a sweep over all organisations
		const q = `DELETE FROM sms_incoming_parts WHERE first_at < $1`
		parts = 0
		return db.Affected(ctx, tx, &parts, q, db.At(s.cfg.Clock.Now().Add(-24*time.Hour)))
	})
	if receipts+parts > 0 {
		s.cfg.Log.Info("deleted after its retention", "what", "receipts and parts of messages", "count", receipts+parts)
	}
	return err
}

func firstError(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// reassign reassigns the messages that wait for a carrier. A failing HTTP carrier needs none of this, because each
// attempt handles its own message.
func (s *Service) reassign(ctx context.Context, org, id string) error {
	c, err := s.carrier(ctx, s.cfg.DB.Read(ctx), org, id)
	p, _ := providerOf(c.Provider)
	switch {
	case db.IsNone(err):
		return s.cfg.Messages.ReassignWaiting(ctx, org, id, true)
	case err != nil:
		return err
	case !c.Enabled:
		return s.cfg.Messages.ReassignWaiting(ctx, org, id, true)
	case p.hasConnection:
		return s.cfg.Messages.ReassignWaiting(ctx, org, id, false)
	}
	return nil
}
