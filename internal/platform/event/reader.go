package event

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"soniq/internal/platform/db"
)

// A Reader numbers committed events in the order in which it finds them, which is the order of commit, and hands
// them on: in the same transaction to Fan, after it to the live stream. One reader runs per node; they take turns.
type Reader struct {
	Outbox *Outbox
	Log    *slog.Logger
	// Fan is given every batch inside the transaction that numbers it, less what is for the live stream only: deliveries are
	// made there.
	Fan func(ctx context.Context, tx db.Querier, batch []Event) error

	alone bool // it runs, and nobody else writes to the database: see Outbox.Gathered
}

// batchSize is how many events are numbered in one transaction.
const batchSize = 500

// poll is the safety net below the wake-ups.
const poll = time.Second

// Stream is the subject on which numbered events are announced, each as an Event.
const Stream = "stream.events"

// breath is the least time between two reads that were asked for: the first event of a quiet time goes out at once, those of a
// busy one together, and with commits of others.
const breath = 2 * time.Millisecond

// crowd is how many events in one read make a busy time, too: those of a commit that many shared.
const crowd = 8

// Run reads until the context ends.
func (r *Reader) Run(ctx context.Context) {
	wake := r.Outbox.Bus.Subscribe(Wake, 1)
	defer wake.Close()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	r.alone = r.Outbox.DB.Name() == "sqlite"
	defer r.Outbox.reader.Store(nil)
	read := r.batch
	for {
		n, err := read(ctx)
		ended := time.Now()
		if err != nil && ctx.Err() == nil {
			r.Log.Error("events not read", "err", err)
		}
		if n == batchSize && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-wake.C:
			read = r.batch
			if breathe(ctx, ended) || n >= crowd {
				read = r.shared
			}
		case <-tick.C:
			read = r.Once
			if r.alone && r.Outbox.reader.Load() == nil {
				read = r.batch
			}
		}
	}
}

// breathe reports whether there was no breath yet.
func breathe(ctx context.Context, since time.Time) bool {
	rest := breath - time.Since(since)
	if rest <= 0 {
		return false
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return true
}

// Once numbers and hands on one batch, and returns its size. It looks first, without writing.
func (r *Reader) Once(ctx context.Context) (int, error) {
	if any, err := r.waiting(ctx); err != nil || !any {
		return 0, err
	}
	return r.batch(ctx)
}

func (r *Reader) batch(ctx context.Context) (int, error) { return r.read(ctx, r.Outbox.DB.Tx) }

// shared is batch for a busy time: its commit may wait for those of others.
func (r *Reader) shared(ctx context.Context) (int, error) {
	return r.read(ctx, func(ctx context.Context, fn func(tx db.Querier) error) error { return r.Outbox.DB.Later(ctx, fn)() })
}

func (r *Reader) read(ctx context.Context, transact func(context.Context, func(tx db.Querier) error) error) (int, error) {
	var batch []Event
	err := transact(ctx, func(tx db.Querier) (err error) {
		if err = Turn(ctx, tx); err != nil {
			return err
		}
		if batch, err = r.open(ctx, tx); err != nil {
			return err
		}
		if len(batch) > 0 {
			if err := number(ctx, tx, batch); err != nil {
				return err
			}
			if err := r.fan(ctx, tx, batch); err != nil {
				return err
			}
		}
		if r.alone && len(batch) < batchSize { // whoever commits after this is numbered after it
			r.Outbox.reader.Store(r)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("read outbox: %w", err)
	}
	r.announce(batch)
	return len(batch), nil
}

// fan hands on what is not for the live stream alone.
func (r *Reader) fan(ctx context.Context, tx db.Querier, batch []Event) error {
	return r.Fan(ctx, tx, slices.DeleteFunc(slices.Clone(batch), func(e Event) bool { return e.Audience == Streamed }))
}

// announce puts numbered events on the live stream.
func (r *Reader) announce(batch []Event) {
	for _, e := range batch {
		r.Outbox.Bus.Publish(Stream, e)
	}
}

// Turn waits until no other transaction is numbering events or handing them on, and keeps others waiting until this one
// ends. Without it two nodes could hand on the events of one call in the wrong order.
func Turn(ctx context.Context, tx db.Querier) error {
	if _, err := tx.Exec(ctx, `UPDATE event_turn SET taken = taken + 1 WHERE id = $1`, 1); err != nil {
		return fmt.Errorf("wait for the outbox: %w", err)
	}
	return nil
}

// waiting looks without writing, so that an idle system does not commit.
func (r *Reader) waiting(ctx context.Context) (bool, error) {
	// tenant: the outbox is read for all organisations
	const q = `SELECT EXISTS (SELECT 1 FROM events WHERE sequence IS NULL)`
	var any bool
	err := r.Outbox.DB.Read(ctx).QueryRow(ctx, q).Scan(&any)
	return any, err
}

func (r *Reader) open(ctx context.Context, tx db.Querier) ([]Event, error) {
	// tenant: the outbox is read for all organisations
	const q = `SELECT org_id, id, kind, call_id, audience, body, occurred_at FROM events
		WHERE sequence IS NULL ORDER BY id LIMIT 500` // batchSize
	rows, err := tx.Query(ctx, q)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var batch []Event
	for rows.Next() {
		var e Event
		var call db.Null
		if err := rows.Scan(&e.OrgID, &e.ID, &e.Kind, &call, &e.Audience, &e.Body, &e.OccurredAt); err != nil {
			return nil, err
		}
		e.CallID = string(call)
		batch = append(batch, e)
	}
	return batch, rows.Err()
}

// number gives each event the next number of its organisation, and writes it down.
func number(ctx context.Context, tx db.Querier, batch []Event) error {
	if err := count(ctx, tx, batch); err != nil {
		return err
	}
	return db.Bulk(len(batch), func(from, to int) error { return writeNumbers(ctx, tx, batch[from:to]) })
}

// count gives each event the next number of its organisation.
func count(ctx context.Context, tx db.Querier, batch []Event) error {
	next := map[string]int64{}
	for _, e := range batch {
		next[e.OrgID]++
	}
	for org, n := range next {
		const q = `INSERT INTO event_sequences (org_id, last) VALUES ($1, $2)
			ON CONFLICT (org_id) DO UPDATE SET last = event_sequences.last + $2 RETURNING last`
		var last int64
		if err := tx.QueryRow(ctx, q, org, n).Scan(&last); err != nil {
			return fmt.Errorf("number events: %w", err)
		}
		next[org] = last - n
	}
	for i := range batch {
		e := &batch[i]
		next[e.OrgID]++
		e.Sequence = next[e.OrgID]
	}
	return nil
}

func writeNumbers(ctx context.Context, tx db.Querier, batch []Event) error {
	var args []any
	for _, e := range batch {
		args = append(args, e.OrgID, e.ID, e.Sequence)
	}
	// tenant: each row names its organisation
	q := `UPDATE events SET sequence = v.column3 FROM (VALUES ` + db.Values(1, len(batch), "", "", "BIGINT") + `) AS v
		WHERE org_id = v.column1 AND id = v.column2`
	if _, err := tx.Exec(ctx, q, args...); err != nil {
		return fmt.Errorf("number events: %w", err)
	}
	return nil
}

// Get returns one numbered event of an organisation, or db.ErrNone.
func Get(ctx context.Context, q db.Querier, org, id string) (Event, error) {
	const text = `SELECT id, sequence, kind, call_id, audience, body, occurred_at FROM events WHERE org_id = $1 AND id = $2`
	e := Event{OrgID: org}
	var call db.Null
	var sequence *int64
	err := q.QueryRow(ctx, text, org, id).Scan(&e.ID, &sequence, &e.Kind, &call, &e.Audience, &e.Body, &e.OccurredAt)
	if sequence != nil {
		e.Sequence = *sequence
	}
	e.CallID = string(call)
	return e, err
}

// Sweep deletes numbered events that occurred before a time, a batch at a time, and returns how many. It finds them by
// their ids, which sort by time.
func (o *Outbox) Sweep(ctx context.Context, before time.Time) (gone int64, err error) {
	orgs, err := o.orgs(ctx)
	for _, org := range orgs {
		for n := int64(1); n > 0 && err == nil; gone += n {
			n, err = o.sweepSome(ctx, org, db.FirstID("evt", before))
		}
	}
	return gone, err
}

// orgs lists the organisations that ever had an event.
func (o *Outbox) orgs(ctx context.Context) (all []string, err error) {
	// tenant: retention is swept over all organisations
	rows, err := o.DB.Read(ctx).Query(ctx, `SELECT org_id FROM event_sequences`)
	if err != nil {
		return nil, fmt.Errorf("sweep events: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var org string
		if err := rows.Scan(&org); err != nil {
			return nil, err
		}
		all = append(all, org)
	}
	return all, rows.Err()
}

func (o *Outbox) sweepSome(ctx context.Context, org, before string) (n int64, err error) {
	const q = `DELETE FROM events WHERE org_id = $1 AND id IN
		(SELECT id FROM events WHERE org_id = $1 AND id < $2 AND sequence + 0 > 0 LIMIT 500)` // + 0: found by id, by no index of sequence
	err = o.DB.Tx(ctx, func(tx db.Querier) error {
		r, err := tx.Exec(ctx, q, org, before)
		if err != nil {
			return fmt.Errorf("sweep events: %w", err)
		}
		n, err = r.RowsAffected()
		return err
	})
	return n, err
}

// Last is the sequence of the organisation's newest numbered event; 0 where it has none.
func (o *Outbox) Last(ctx context.Context, org string) (last int64, err error) {
	err = o.DB.Read(ctx).QueryRow(ctx, `SELECT last FROM event_sequences WHERE org_id = $1`, org).Scan(&last)
	if db.IsNone(err) {
		return 0, nil
	}
	return last, err
}

// After returns up to 200 numbered events of an organisation behind a sequence, in order.
func (o *Outbox) After(ctx context.Context, org string, sequence int64) ([]Event, error) {
	const q = `SELECT id, sequence, kind, call_id, audience, body, occurred_at FROM events
		WHERE org_id = $1 AND sequence > $2 ORDER BY sequence LIMIT 200`
	rows, err := o.DB.Read(ctx).Query(ctx, q, org, sequence)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	defer rows.Close()
	var all []Event
	for rows.Next() {
		e := Event{OrgID: org}
		var call db.Null
		if err := rows.Scan(&e.ID, &e.Sequence, &e.Kind, &call, &e.Audience, &e.Body, &e.OccurredAt); err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		e.CallID = string(call)
		all = append(all, e)
	}
	return all, rows.Err()
}
