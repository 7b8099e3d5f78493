package trunk

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// Placed tells, once per call, that an emergency call is on its way: the live stream, whoever watches it, and the log of
// events, which keeps it.
func (s *Service) Placed(ctx context.Context, outbox *event.Outbox, org string, e event.EmergencyCallPlaced) error {
	e.At = db.At(s.now())
	err := s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		var told bool
		const text = `SELECT EXISTS (SELECT 1 FROM events WHERE org_id = $1 AND call_id = $2 AND kind = $3)`
		if err := tx.QueryRow(ctx, text, org, e.CallID, string(e.Kind())).Scan(&told); err != nil || told {
			return err
		}
		return outbox.Publish(ctx, tx, org, e)
	})
	if err != nil {
		return fmt.Errorf("tell of an emergency call: %w", err)
	}
	return nil
}

// WithoutEmergency names the organisations that cannot make emergency calls; Acknowledged says that they know.
func (s *Service) WithoutEmergency(ctx context.Context) ([]Unreached, error) {
	all, err := s.orgs.List(ctx)
	if err != nil {
		return nil, err
	}
	var without []Unreached
	for _, o := range all {
		if o.EmergencyCalling != "available" {
			without = append(without, Unreached{ID: o.ID, Name: o.Name, Acknowledged: !o.Emergency.AcknowledgedAt.IsZero()})
		}
	}
	return without, nil
}

// Unreached is an organisation without emergency calls.
type Unreached struct {
	ID, Name     string
	Acknowledged bool
}
