package trunk

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/platform/db"
)

const answerSeizureWindow = time.Hour

// answerSeizureRatios returns the ASR of each trunk of an organisation over the last hour, in percent. A trunk
// without calls is missing. The values are at most one minute old.
func (s *Service) answerSeizureRatios(ctx context.Context, org string) (map[string]int, error) {
	return s.answerSeizureCache.Get(org, func() (map[string]int, error) {
		return queryAnswerSeizureRatios(ctx, s.db.Read(ctx), org, db.At(s.now().Add(-answerSeizureWindow)))
	})
}

func queryAnswerSeizureRatios(ctx context.Context, q db.Querier, org string, since db.Time) (map[string]int, error) {
	const text = `SELECT l.trunk_id, COUNT(*), SUM(CASE WHEN l.answered_at IS NULL THEN 0 ELSE 1 END) FROM calls c
		JOIN legs l ON l.org_id = c.org_id AND l.call_id = c.id
		WHERE c.org_id = $1 AND c.started_at >= $2 AND l.trunk_id IS NOT NULL AND l.role <> 'caller' AND l.ended_at IS NOT NULL
		GROUP BY l.trunk_id`
	rows, err := q.Query(ctx, text, org, since)
	if err != nil {
		return nil, fmt.Errorf("count calls of trunks: %w", err)
	}
	defer rows.Close()
	rates := map[string]int{}
	for rows.Next() {
		var id string
		var calls, answered int
		if err := rows.Scan(&id, &calls, &answered); err != nil {
			return nil, err
		}
		rates[id] = (200*answered + calls) / (2 * calls)
	}
	return rates, rows.Err()
}
