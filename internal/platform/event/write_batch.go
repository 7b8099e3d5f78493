package event

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// WriteBatch inserts the events of a transaction together.
//
// On SQLite one node writes. If its reader has numbered all earlier events, WriteBatch also numbers and distributes
// the new ones before the commit. No read is needed then, and a webhook delivery is committed together with its
// event. If that fails, the events wait for the reader. On PostgreSQL several nodes commit concurrently. Numbers
// assigned before the commit would not be in commit order, so the reader assigns them.
func (o *Outbox) WriteBatch(ctx context.Context, tx db.Querier, items []any) error {
	batch := make([]Event, len(items))
	for i, x := range items {
		batch[i] = x.(Event)
	}
	if r := o.reader.Load(); r != nil {
		err := db.Savepoint(ctx, tx, func(tx db.Querier) error { return r.write(ctx, tx, batch) })
		if err == nil {
			return nil
		}
		r.Log.Error("events not numbered in their transaction; the reader will number them", "err", err)
		o.reader.CompareAndSwap(r, nil) // later events must not get a lower number than these
		for i := range batch {
			batch[i].Sequence = 0
		}
	}
	db.OnCommit(tx, func() { o.Bus.Publish(Wake, nil) })
	return insert(ctx, tx, batch)
}

// write numbers, inserts and distributes events.
func (r *Reader) write(ctx context.Context, tx db.Querier, batch []Event) error {
	if err := count(ctx, tx, batch); err != nil {
		return err
	}
	if err := insert(ctx, tx, batch); err != nil {
		return err
	}
	db.OnCommit(tx, func() { r.announce(batch) })
	return r.deliver(ctx, tx, batch)
}

func insert(ctx context.Context, tx db.Querier, batch []Event) error {
	return db.Bulk(len(batch), func(from, to int) error { return insertSome(ctx, tx, batch[from:to]) })
}

func insertSome(ctx context.Context, tx db.Querier, batch []Event) error {
	args := make([]any, 0, 8*len(batch))
	for _, e := range batch {
		var sequence any
		if e.Sequence > 0 {
			sequence = e.Sequence
		}
		args = append(args, e.OrgID, e.ID, sequence, string(e.Kind), db.Null(e.CallID), string(e.Audience), e.Body, e.OccurredAt)
	}
	// tenant: each row names its organisation
	q := `INSERT INTO events (org_id, id, sequence, kind, call_id, audience, body, occurred_at)
		VALUES ` + db.Values(1, len(batch), "", "", "", "", "", "", "", "")
	if _, err := tx.Exec(ctx, q, args...); err != nil {
		return fmt.Errorf("publish %s: %w", batch[0].Kind, err)
	}
	return nil
}
