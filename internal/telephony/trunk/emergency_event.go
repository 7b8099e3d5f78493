package trunk

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// PublishEmergencyCall publishes, once per call, that an emergency call is being placed. The event goes to the live
// stream, to subscribers and into the event log.
func (s *Service) PublishEmergencyCall(ctx context.Context, outbox *event.Outbox, org string, e event.EmergencyCallPlaced) error {
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
		return fmt.Errorf("publish emergency call: %w", err)
	}
	return nil
}

// OrgsWithoutEmergencyCalls returns the organisations that cannot make emergency calls.
func (s *Service) OrgsWithoutEmergencyCalls(ctx context.Context) ([]OrgWithoutEmergencyCalls, error) {
	all, err := s.orgs.List(ctx)
	if err != nil {
		return nil, err
	}
	var without []OrgWithoutEmergencyCalls
	for _, o := range all {
		if o.EmergencyCalling != "available" {
			without = append(without, OrgWithoutEmergencyCalls{ID: o.ID, Name: o.Name, Acknowledged: !o.Emergency.AcknowledgedAt.IsZero()})
		}
	}
	return without, nil
}

// OrgWithoutEmergencyCalls is an organisation that cannot make emergency calls. Acknowledged reports whether an
// administrator has acknowledged it.
type OrgWithoutEmergencyCalls struct {
	ID, Name     string
	Acknowledged bool
}
