package device

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// publishRegistrationChange publishes device.registration if the phone becomes registered or unregistered. A refresh
// publishes nothing.
func (s *Service) publishRegistrationChange(ctx context.Context, tx db.Querier, org, deviceID string, all []Binding) error {
	before, err := countBindings(ctx, tx, org, deviceID, db.At(s.now()))
	if err != nil {
		return err
	}
	if (before > 0) == (len(all) > 0) {
		return nil
	}
	e := event.DeviceRegistration{DeviceID: deviceID, Status: "unregistered"}
	if len(all) > 0 {
		b := all[0]
		e.Status, e.Transport, e.UserAgent = "registered", db.Null(b.Transport).Ptr(), db.Null(b.UserAgent).Ptr()
		e.ExpiresAt = db.At(b.Expires).Ptr()
	}
	return s.publishRegistration(ctx, tx, org, e)
}

// countBindings counts the bindings of a phone that expire after a time.
func countBindings(ctx context.Context, tx db.Querier, org, deviceID string, beyond db.Time) (n int, err error) {
	const q = `SELECT count(*) FROM registrations WHERE org_id = $1 AND device_id = $2 AND expires_at > $3`
	if err := tx.QueryRow(ctx, q, org, deviceID, beyond).Scan(&n); err != nil {
		return 0, fmt.Errorf("read registration: %w", err)
	}
	return n, nil
}

// endRegistration removes the bindings of a phone, and publishes device.registration if it was registered.
func (s *Service) endRegistration(ctx context.Context, tx db.Querier, org, deviceID string) error {
	if err := s.publishRegistrationChange(ctx, tx, org, deviceID, nil); err != nil {
		return err
	}
	if err := deleteBindings(ctx, tx, org, deviceID); err != nil {
		return fmt.Errorf("end registration: %w", err)
	}
	return nil
}

func (s *Service) publishRegistration(ctx context.Context, tx db.Querier, org string, e event.DeviceRegistration) error {
	const q = `SELECT user_id FROM devices WHERE org_id = $1 AND id = $2`
	var user db.Null
	if err := tx.QueryRow(ctx, q, org, e.DeviceID).Scan(&user); err != nil {
		return fmt.Errorf("find owner of phone: %w", err)
	}
	e.UserID, e.At = user.Ptr(), db.At(s.now())
	db.OnCommit(tx, func() { s.registrationChanged(org, string(user)) })
	return s.config.Outbox.Publish(ctx, tx, org, e)
}

// WatchInterval is how often WatchExpirations looks for expired registrations.
const WatchInterval = 15 * time.Second

// WatchExpirations publishes device.registration for expired registrations. It runs until the context ends.
func (s *Service) WatchExpirations(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(WatchInterval)
	defer tick.Stop()
	since := s.now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := s.now()
		if err := s.PublishExpired(ctx, since, now); err != nil {
			if ctx.Err() == nil {
				log.Warn("expired registrations not published", "err", err)
			}
			continue
		}
		since = now
	}
}

// expiredPage is the number of phones that one transaction of PublishExpired publishes.
const expiredPage = 1000

// expiredRegistrations selects the phones after a given one that became unregistered by expiry within an interval.
const expiredRegistrations = `SELECT r.org_id, r.device_id FROM registrations r JOIN devices d ON d.org_id = r.org_id AND d.id = r.device_id
	WHERE r.expires_at > $1 AND r.expires_at <= $2 AND (r.org_id, r.device_id) > ($3, $4)
		AND NOT EXISTS (SELECT 1 FROM registrations o WHERE o.org_id = r.org_id AND o.device_id = r.device_id AND o.expires_at > $2)
	GROUP BY r.org_id, r.device_id ORDER BY r.org_id, r.device_id LIMIT $5`

// PublishExpired publishes device.registration for the phones that became unregistered by expiry after since and
// until now.
func (s *Service) PublishExpired(ctx context.Context, since, now time.Time) error {
	var last deviceRef
	for {
		gone, err := s.findExpired(ctx, since, now, last)
		if err != nil || len(gone) == 0 {
			return err
		}
		if err := s.publishExpiredPage(ctx, gone); err != nil || len(gone) < expiredPage {
			return err
		}
		last = gone[len(gone)-1]
	}
}

func (s *Service) publishExpiredPage(ctx context.Context, gone []deviceRef) error {
	return s.db.Tx(ctx, func(tx db.Querier) error {
		for _, g := range gone {
			if err := setLost(ctx, tx, g.org, g.id, db.At(s.now())); err != nil {
				return err
			}
			if err := s.publishRegistration(ctx, tx, g.org, event.DeviceRegistration{DeviceID: g.id, Status: "expired"}); err != nil {
				return err
			}
		}
		return nil
	})
}

// deviceRef holds the ids of a device and its organisation.
type deviceRef struct{ org, id string }

func (s *Service) findExpired(ctx context.Context, since, now time.Time, after deviceRef) ([]deviceRef, error) {
	// tenant: phones of all organisations are watched
	rows, err := s.db.Read(ctx).Query(ctx, expiredRegistrations, db.At(since), db.At(now), after.org, after.id, expiredPage)
	if err != nil {
		return nil, fmt.Errorf("find expired registrations: %w", err)
	}
	defer rows.Close()
	var all []deviceRef
	for rows.Next() {
		var p deviceRef
		if err := rows.Scan(&p.org, &p.id); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, rows.Err()
}
