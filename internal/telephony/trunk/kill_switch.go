package trunk

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// killSwitchSubject is the bus subject for changes of the outbound kill switch.
const killSwitchSubject = "changed.outbound"

// OutboundKillSwitch reports whether outbound calls of the whole installation are stopped: by the operator, or because this is a
// restored copy that the operator has not confirmed. The result is cached.
func (s *Service) OutboundKillSwitch(ctx context.Context) (bool, error) {
	if s.held != nil {
		return true, nil
	}
	return s.killSwitch.Get("outbound", func() (bool, error) {
		var thrown bool
		err := s.db.Read(db.Detached(ctx)).QueryRow(ctx, `SELECT thrown FROM switches WHERE name = 'outbound'`).Scan(&thrown)
		if db.IsNone(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read the outbound kill switch: %w", err)
		}
		return thrown, nil
	})
}

// SetOutboundKillSwitch stops outbound calls of every organisation except emergency calls, or allows them again. The
// state is stored and survives restarts. Other nodes on the same database follow within seconds.
func (s *Service) SetOutboundKillSwitch(ctx context.Context, stop bool) error {
	const text = `INSERT INTO switches (name, thrown, changed_at) VALUES ('outbound', $1, $2)
		ON CONFLICT (name) DO UPDATE SET thrown = $1, changed_at = $2`
	err := s.db.Tx(ctx, func(tx db.Querier) error {
		db.OnCommit(tx, func() { s.bus.Publish(killSwitchSubject, nil) })
		_, err := tx.Exec(ctx, text, stop, db.At(s.now()))
		return err
	})
	if err != nil {
		return fmt.Errorf("set the outbound kill switch: %w", err)
	}
	return nil
}
