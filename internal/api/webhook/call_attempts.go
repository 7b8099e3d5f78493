package webhook

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// CallAttempt is an attempt to deliver an event of a call.
type CallAttempt struct {
	At             db.Time
	Kind           string // of the event
	WebhookID      string
	DeliveryID     string
	EventID        string
	Attempt        int
	DurationMS     int
	ResponseStatus *int
	Error          *string
}

// CallAttempts returns the attempts for the events of a call in order, at most 5,000.
func (s *Service) CallAttempts(ctx context.Context, org, call string) ([]CallAttempt, error) {
	const q = `SELECT a.at, d.kind, d.webhook_id, d.id, d.event_id, a.n, a.duration_ms, a.response_status, a.error
		FROM events e JOIN webhook_deliveries d ON d.org_id = e.org_id AND d.event_id = e.id
			JOIN webhook_attempts a ON a.org_id = d.org_id AND a.delivery_id = d.id
		WHERE e.org_id = $1 AND e.call_id = $2 ORDER BY a.at, d.id LIMIT 5000`
	rows, err := s.cfg.DB.Read(ctx).Query(ctx, q, org, call)
	if err != nil {
		return nil, fmt.Errorf("list deliveries of call: %w", err)
	}
	defer rows.Close()
	var all []CallAttempt
	for rows.Next() {
		var x CallAttempt
		if err := rows.Scan(&x.At, &x.Kind, &x.WebhookID, &x.DeliveryID, &x.EventID, &x.Attempt, &x.DurationMS, &x.ResponseStatus,
			&x.Error); err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, rows.Err()
}
