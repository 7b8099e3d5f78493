package webhook

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/personal"
)

// EraseCall deletes the deliveries of a call's events, in the caller's transaction. Unsent ones are not sent.
func (s *Service) EraseCall(ctx context.Context, tx db.Querier, org, callID string) error {
	_, err := s.eraseMatching(ctx, tx, org, "call_id = $2", callID)
	return err
}

// RemoveContent removes a kind of content from the deliveries of a call's events, in the caller's transaction. It also removes the
// responses of receivers, which may repeat it. Deliveries not sent yet are sent without it.
func (s *Service) RemoveContent(ctx context.Context, tx db.Querier, org, callID string, c event.Content) error {
	const responses = `UPDATE webhook_attempts SET response_body = NULL WHERE org_id = $1 AND delivery_id IN
		(SELECT id FROM webhook_deliveries WHERE org_id = $1 AND call_id = $2)`
	if _, err := tx.Exec(ctx, responses, org, callID); err != nil {
		return fmt.Errorf("remove responses to events of %s: %w", callID, err)
	}
	const read = `SELECT id, kind, body FROM webhook_deliveries WHERE org_id = $1 AND call_id = $2`
	const write = `UPDATE webhook_deliveries SET body = $3 WHERE org_id = $1 AND id = $2`
	return event.RemoveFromBodies(ctx, tx, read, write, org, callID, c)
}

// containsText is the condition for deliveries with a text in their body or in a response.
const containsText = `(body LIKE $2 ESCAPE '\' OR EXISTS (SELECT 1 FROM webhook_attempts a WHERE a.org_id = webhook_deliveries.org_id
	AND a.delivery_id = webhook_deliveries.id AND a.response_body LIKE $2 ESCAPE '\'))`

// CountWithText returns the number of deliveries with a text in their body or in a response.
func (s *Service) CountWithText(ctx context.Context, q db.Querier, org, text string) (n int, err error) {
	err = q.QueryRow(ctx, `SELECT count(*) FROM webhook_deliveries WHERE org_id = $1 AND `+containsText, org,
		"%"+db.Escape(text)+"%").Scan(&n)
	return n, err
}

// EraseWithText deletes a batch of deliveries with a text in their body or in a response, in the caller's transaction. It
// returns their number.
func (s *Service) EraseWithText(ctx context.Context, tx db.Querier, org, text string) (int, error) {
	return s.eraseMatching(ctx, tx, org, containsText, "%"+db.Escape(text)+"%")
}

// eraseMatching deletes a batch of deliveries that meet a condition on $2, with their attempts.
func (s *Service) eraseMatching(ctx context.Context, tx db.Querier, org, condition, value string) (int, error) {
	rows, err := tx.Query(ctx, `SELECT id FROM webhook_deliveries WHERE org_id = $1 AND `+condition+` LIMIT 500`, org, value)
	if err != nil {
		return 0, err
	}
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			rows.Close()
			return 0, err
		}
		ids = append(ids, id)
	}
	if err := rows.Close(); err != nil {
		return 0, err
	}
	for _, id := range ids {
		for _, q := range []string{
			`DELETE FROM webhook_attempts WHERE org_id = $1 AND delivery_id = $2`,
			`DELETE FROM webhook_deliveries WHERE org_id = $1 AND id = $2`,
		} {
			if _, err := tx.Exec(ctx, q, org, id); err != nil {
				return 0, fmt.Errorf("erase delivery %s: %w", id, err)
			}
		}
	}
	return len(ids), nil
}

// ExportCall exports the deliveries of a call's events.
func (s *Service) ExportCall(ctx context.Context, q db.Querier, org, callID string, w personal.Writer) error {
	return exportMatching(ctx, q, org, "call_id = $2", callID, w)
}

// ExportWithText exports the deliveries with a text in their body or in a response.
func (s *Service) ExportWithText(ctx context.Context, q db.Querier, org, text string, w personal.Writer) error {
	return exportMatching(ctx, q, org, containsText, "%"+db.Escape(text)+"%", w)
}

// exportMatching exports the deliveries that meet a condition on $2, with their attempts.
func exportMatching(ctx context.Context, q db.Querier, org, condition, value string, w personal.Writer) error {
	deliveries := `SELECT id, webhook_id, event_id, kind, call_id, status, created_at, finished_at, body AS event FROM webhook_deliveries
		WHERE org_id = $1 AND ` + condition + ` ORDER BY id`
	if err := personal.Rows(ctx, q, w, "webhook_deliveries", deliveries, org, value); err != nil {
		return err
	}
	attempts := `SELECT delivery_id, at, response_status, response_body, error FROM webhook_attempts WHERE org_id = $1 AND delivery_id IN
		(SELECT id FROM webhook_deliveries WHERE org_id = $1 AND ` + condition + `) ORDER BY delivery_id, n`
	return personal.Rows(ctx, q, w, "webhook_attempts", attempts, org, value)
}
