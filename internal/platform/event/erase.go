package event

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// EraseCall deletes the events of a call in the caller's transaction.
func (o *Outbox) EraseCall(ctx context.Context, tx db.Querier, org, callID string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM events WHERE org_id = $1 AND call_id = $2`, org, callID); err != nil {
		return fmt.Errorf("erase events of %s: %w", callID, err)
	}
	return nil
}

// CountWith returns the number of events whose body contains a text.
func (o *Outbox) CountWith(ctx context.Context, q db.Querier, org, text string) (n int, err error) {
	err = q.QueryRow(ctx, `SELECT count(*) FROM events WHERE org_id = $1 AND body LIKE $2 ESCAPE '\'`, org,
		"%"+db.Escape(text)+"%").Scan(&n)
	return n, err
}

// EraseWith deletes at most 500 events whose body contains a text, in the caller's transaction, and returns their
// number.
func (o *Outbox) EraseWith(ctx context.Context, tx db.Querier, org, text string) (int, error) {
	const q = `DELETE FROM events WHERE org_id = $1 AND id IN
		(SELECT id FROM events WHERE org_id = $1 AND body LIKE $2 ESCAPE '\' LIMIT 500)`
	r, err := tx.Exec(ctx, q, org, "%"+db.Escape(text)+"%")
	if err != nil {
		return 0, fmt.Errorf("erase events: %w", err)
	}
	n, err := r.RowsAffected()
	return int(n), err
}
