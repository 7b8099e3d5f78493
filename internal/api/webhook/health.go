package webhook

import (
	"context"
	"fmt"
	"slices"
	"time"

	"soniq/internal/platform/db"
)

// healthSample is the number of newest attempts from which health figures are computed.
const healthSample = 1000

func (s *Service) health(ctx context.Context, q db.Querier, e *endpoint) (Health, error) {
	h := Health{ConsecutiveFailures: e.Failures}
	const waiting = `SELECT count(*), min(created_at) FROM webhook_deliveries
		WHERE org_id = $1 AND webhook_id = $2 AND finished_at IS NULL`
	var oldest db.Time
	if err := q.QueryRow(ctx, waiting, e.Org, e.ID).Scan(&h.Pending, &oldest); err != nil {
		return h, fmt.Errorf("count pending deliveries: %w", err)
	}
	h.OldestPendingAt = oldest.Ptr()
	took, good, err := recentAttempts(ctx, q, e, db.At(s.cfg.Clock.Now().Add(-24*time.Hour)))
	if err != nil || len(took) == 0 {
		return h, err
	}
	slices.Sort(took)
	rate, p95 := good*100/len(took), took[(len(took)*95-1)/100]
	h.SuccessRate24h, h.P95MS = &rate, &p95
	return h, nil
}

// recentAttempts returns the durations of the newest attempts in milliseconds, and the number of successful ones.
func recentAttempts(ctx context.Context, q db.Querier, e *endpoint, since db.Time) (took []int, good int, err error) {
	const text = `SELECT duration_ms, error FROM webhook_attempts
		WHERE org_id = $1 AND webhook_id = $2 AND at >= $3 ORDER BY at DESC LIMIT $4`
	rows, err := q.Query(ctx, text, e.Org, e.ID, since, healthSample)
	if err != nil {
		return nil, 0, fmt.Errorf("read attempts: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var ms int
		var fault db.Null
		if err := rows.Scan(&ms, &fault); err != nil {
			return nil, 0, err
		}
		took = append(took, ms)
		if fault == "" {
			good++
		}
	}
	return took, good, rows.Err()
}
