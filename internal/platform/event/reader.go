package event

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
)

// Reader numbers committed events in the order in which it finds them, which is the commit order. It passes them to
// CreateDeliveries in the same transaction, and to the event streams after the commit. One reader runs per node; a
// row lock makes them take turns.
type Reader struct {
	Outbox *Outbox
	Log    *slog.Logger
	// CreateDeliveries gets every batch in the transaction that numbers it, without events for streams only. It
	// creates the webhook deliveries.
	CreateDeliveries func(ctx context.Context, tx db.Querier, batch []Event) error

	singleWriter bool // no other node writes to the database: see Outbox.WriteBatch
}

// batchSize is the number of events numbered in one transaction.
const batchSize = 500

// poll is the interval of reads if no wake-up arrives.
const poll = time.Second

// Stream is the bus subject of numbered events, each as an Event.
const Stream = "stream.events"

// minReadGap is the shortest time between two reads caused by a wake-up. The first event after a quiet period is sent
// at once. Later ones are read together, and share commits with other transactions.
const minReadGap = 2 * time.Millisecond

// busyBatch is the number of events in one read that counts as busy as well, because they come from one shared
// commit.
const busyBatch = 8

// Run reads until ctx ends.
func (r *Reader) Run(ctx context.Context) {
	wake := r.Outbox.Bus.Subscribe(Wake, 1)
	defer wake.Close()
	tick := clock.NewTicker(poll)
	defer tick.Stop()
	r.singleWriter = r.Outbox.DB.Name() == "sqlite"
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
			if waitReadGap(ctx, ended) || n >= busyBatch {
				read = r.shared
			}
		case <-tick.C:
			read = r.Once
			if r.singleWriter && r.Outbox.reader.Load() == nil {
				read = r.batch
			}
		}
	}
}

// waitReadGap waits until minReadGap has passed since the last read. It reports whether it had to wait.
func waitReadGap(ctx context.Context, since time.Time) bool {
	rest := minReadGap - time.Since(since)
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

// Once numbers and distributes one batch, and returns its size. It first checks with a read whether there are events.
func (r *Reader) Once(ctx context.Context) (int, error) {
	if any, err := r.waiting(ctx); err != nil || !any {
		return 0, err
	}
	return r.batch(ctx)
}

func (r *Reader) batch(ctx context.Context) (int, error) { return r.read(ctx, r.Outbox.DB.Tx) }

// shared is batch with a commit that may wait for other transactions.
func (r *Reader) shared(ctx context.Context) (int, error) {
	return r.read(ctx, func(ctx context.Context, fn func(tx db.Querier) error) error { return r.Outbox.DB.TxAsync(ctx, fn)() })
}

func (r *Reader) read(ctx context.Context, transact func(context.Context, func(tx db.Querier) error) error) (int, error) {
	var batch []Event
	err := transact(ctx, func(tx db.Querier) (err error) {
		if err = LockOrder(ctx, tx); err != nil {
			return err
		}
		if batch, err = r.open(ctx, tx); err != nil {
			return err
		}
		if len(batch) > 0 {
			if err := number(ctx, tx, batch); err != nil {
				return err
			}
			if err := r.deliver(ctx, tx, batch); err != nil {
				return err
			}
		}
		if r.singleWriter && len(batch) < batchSize { // events that commit after this are numbered after it
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

// deliver creates the deliveries of events that are not for streams only.
func (r *Reader) deliver(ctx context.Context, tx db.Querier, batch []Event) error {
	return r.CreateDeliveries(ctx, tx, slices.DeleteFunc(slices.Clone(batch), func(e Event) bool { return e.Audience == AudienceStream }))
}

// announce publishes numbered events to the event streams.
func (r *Reader) announce(batch []Event) {
	for _, e := range batch {
		r.Outbox.Bus.Publish(Stream, e)
	}
}

// LockOrder waits until no other transaction numbers or distributes events, and holds the lock until this transaction
// ends. Without it two nodes could distribute the events of one call in the wrong order.
func LockOrder(ctx context.Context, tx db.Querier) error {
	if _, err := tx.Exec(ctx, `UPDATE event_turn SET taken = taken + 1 WHERE id = $1`, 1); err != nil {
		return fmt.Errorf("wait for the outbox: %w", err)
	}
	return nil
}

// waiting checks for events with a read, so that an idle system does not commit.
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

// number assigns the next sequence numbers of the organisations and writes them.
func number(ctx context.Context, tx db.Querier, batch []Event) error {
	if err := count(ctx, tx, batch); err != nil {
		return err
	}
	return db.Bulk(len(batch), func(from, to int) error { return writeNumbers(ctx, tx, batch[from:to]) })
}

// count assigns the next sequence numbers of the organisations.
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

// Get returns a numbered event of an organisation, or db.ErrNone.
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

// Sweep deletes numbered events from before a time in batches, and returns their number. It finds them by ID, because
// IDs sort by time.
func (o *Outbox) Sweep(ctx context.Context, before time.Time) (gone int64, err error) {
	orgs, err := o.orgs(ctx)
	for _, org := range orgs {
		for n := int64(1); n > 0 && err == nil; gone += n {
			n, err = o.sweepSome(ctx, org, db.FirstID("evt", before))
		}
	}
	return gone, err
}

// orgs returns the organisations that ever had an event.
func (o *Outbox) orgs(ctx context.Context) (all []string, err error) {
	// tenant: retention is swept over all organisations
	return db.Strings(ctx, o.DB.Read(ctx), "sweep events", `SELECT org_id FROM event_sequences`)
}

func (o *Outbox) sweepSome(ctx context.Context, org, before string) (n int64, err error) {
	// + 0 prevents an index of sequence: rows are found by id.
	const q = `DELETE FROM events WHERE org_id = $1 AND id IN
		(SELECT id FROM events WHERE org_id = $1 AND id < $2 AND sequence + 0 > 0 LIMIT 500)`
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

// Last returns the sequence number of the organisation's newest numbered event; 0 if it has none.
func (o *Outbox) Last(ctx context.Context, org string) (last int64, err error) {
	err = o.DB.Read(ctx).QueryRow(ctx, `SELECT last FROM event_sequences WHERE org_id = $1`, org).Scan(&last)
	if db.IsNone(err) {
		return 0, nil
	}
	return last, err
}

// After returns up to 200 numbered events of an organisation after a sequence number, in order.
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
