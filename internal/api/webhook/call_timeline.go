package webhook

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// TimelineDelivery is an attempt to deliver an event of a call, or a delivery without an attempt.
type TimelineDelivery struct {
	At             db.Time // of the attempt; without one, of the creation of the delivery
	Event          string
	EventID        string
	WebhookID      string
	DeliveryID     string
	Attempt        int    // from 1; 0: no attempt yet
	Status         string // of the delivery after the attempt
	ResponseStatus int    // 0: no response
	Error          string // "" if there was none
}

// maxTimelineRows bounds the rows of one call.
const maxTimelineRows = 5000

// TimelineOfCall returns the attempts to deliver a call's events, the oldest first.
func (s *Service) TimelineOfCall(ctx context.Context, org, callID string) ([]TimelineDelivery, error) {
	const q = `SELECT COALESCE(a.at, d.created_at), d.kind, d.event_id, d.webhook_id, d.id, COALESCE(a.n, 0), d.attempts, d.status,
			COALESCE(a.response_status, 0), a.error
		FROM webhook_deliveries d LEFT JOIN webhook_attempts a ON a.org_id = d.org_id AND a.delivery_id = d.id
		WHERE d.org_id = $1 AND d.call_id = $2 ORDER BY COALESCE(a.at, d.created_at), d.sequence, d.id LIMIT $3`
	rows, err := s.cfg.DB.Read(ctx).Query(ctx, q, org, callID, maxTimelineRows)
	if err != nil {
		return nil, fmt.Errorf("list deliveries of call: %w", err)
	}
	defer rows.Close()
	var all []TimelineDelivery
	for rows.Next() {
		var x TimelineDelivery
		var attempts int
		var fault db.Null
		if err := rows.Scan(&x.At, &x.Event, &x.EventID, &x.WebhookID, &x.DeliveryID, &x.Attempt, &attempts, &x.Status,
			&x.ResponseStatus, &fault); err != nil {
			return nil, err
		}
		if x.Attempt < attempts {
			x.Status = retrying
		}
		x.Error = string(fault)
		all = append(all, x)
	}
	return all, rows.Err()
}
