package event

import (
	"context"
	"errors"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/personal"
)

// EraseCall deletes the events of a call in the caller's transaction.
func (o *Outbox) EraseCall(ctx context.Context, tx db.Querier, org, callID string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM events WHERE `+ofCall, org, callID); err != nil {
		return fmt.Errorf("erase events of %s: %w", callID, err)
	}
	return nil
}

// RemoveContent removes a kind of content from the events of a call, in the caller's transaction. The events remain, also those not sent
// yet.
func (o *Outbox) RemoveContent(ctx context.Context, tx db.Querier, org, callID string, c Content) error {
	const read, write = `SELECT id, kind, body FROM events WHERE org_id = $1 AND call_id = $2`, `UPDATE events SET body = $3 WHERE org_id = $1 AND id = $2`
	return RemoveFromBodies(ctx, tx, read, write, org, callID, c)
}

// RemoveFromBodies removes a kind of content from stored bodies of events. The statement read selects id, kind and body by organisation and
// call; the statement write stores a body ($3) of an id ($2).
func RemoveFromBodies(ctx context.Context, tx db.Querier, read, write, org, callID string, c Content) error {
	rows, err := tx.Query(ctx, read, org, callID)
	if err != nil {
		return fmt.Errorf("read events of %s: %w", callID, err)
	}
	defer rows.Close()
	changed := map[string]string{}
	for rows.Next() {
		var id, kind, body string
		if err := rows.Scan(&id, &kind, &body); err != nil {
			return err
		}
		without, differs, err := Without(Kind(kind), body, c)
		if err != nil {
			return err
		}
		if differs {
			changed[id] = without
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for id, body := range changed {
		if _, err := tx.Exec(ctx, write, org, id, body); err != nil {
			return fmt.Errorf("remove %s from event %s: %w", c, id, err)
		}
	}
	return nil
}

// Conditions on events.
const (
	ofCall   = `org_id = $1 AND call_id = $2`
	withText = `org_id = $1 AND body LIKE $2 ESCAPE '\'`
)

// CountWith returns the number of events whose body contains a text.
func (o *Outbox) CountWith(ctx context.Context, q db.Querier, org, text string) (n int, err error) {
	err = q.QueryRow(ctx, `SELECT count(*) FROM events WHERE `+withText, org, "%"+db.Escape(text)+"%").Scan(&n)
	return n, err
}

// EraseWith deletes at most 500 events whose body contains a text, in the caller's transaction, and returns their
// number.
func (o *Outbox) EraseWith(ctx context.Context, tx db.Querier, org, text string) (int, error) {
	const q = `DELETE FROM events WHERE org_id = $1 AND id IN (SELECT id FROM events WHERE ` + withText + ` LIMIT 500)`
	r, err := tx.Exec(ctx, q, org, "%"+db.Escape(text)+"%")
	if err != nil {
		return 0, fmt.Errorf("erase events: %w", err)
	}
	n, err := r.RowsAffected()
	return int(n), err
}

// exported are the columns of an event in an export.
const exported = ` id, kind, call_id, occurred_at, body AS event FROM events WHERE `

// ExportCall exports the events of a call.
func (o *Outbox) ExportCall(ctx context.Context, q db.Querier, org, callID string, w personal.Writer) error {
	return personal.Rows(ctx, q, w, "events", `SELECT`+exported+ofCall+` ORDER BY id`, org, callID)
}

// ExportWith exports the events whose body contains a text.
func (o *Outbox) ExportWith(ctx context.Context, q db.Querier, org, text string, w personal.Writer) error {
	return personal.Rows(ctx, q, w, "events", `SELECT`+exported+withText+` ORDER BY id`, org, "%"+db.Escape(text)+"%")
}
