package db_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// rows is a Batcher that records the names of each batch.
type rows struct {
	mu      sync.Mutex // guards batches
	batches [][]string
	fail    error
}

func (r *rows) WriteBatch(_ context.Context, tx db.Querier, items []any) error {
	var names []string
	for _, x := range items {
		names = append(names, x.(string))
		if err := put(tx, x.(string), 1); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches = append(r.batches, names)
	return r.fail
}

func TestBatch_WrittenBeforeCommit(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d)
		r := &rows{}
		give := func(tx db.Querier, name string) error { return db.Batch(ctx, tx, r, name) }
		must(t, d.TxContext(ctx, func(inner context.Context, tx db.Querier) error {
			must(t, give(tx, "a"))
			_ = d.Tx(inner, func(tx db.Querier) error { return errors.Join(give(tx, "undone"), errWanted) })
			return give(tx, "b")
		}))
		if err := d.Tx(ctx, func(tx db.Querier) error { return errors.Join(give(tx, "failed"), errWanted) }); !errors.Is(err, errWanted) {
			t.Errorf("err = %v", err)
		}
		must(t, db.Batch(ctx, d.Read(ctx), discardBatch{}, "outside of a transaction, at once"))
		if n := count(t, d.Read(ctx)); n != 2 || len(r.batches) != 1 || !slices.Equal(r.batches[0], []string{"a", "b"}) {
			t.Errorf("%d rows of %v, want a and b, together", n, r.batches)
		}
	})
}

type discardBatch struct{}

func (discardBatch) WriteBatch(context.Context, db.Querier, []any) error { return nil }

// A batch that fails rolls back the functions that added to it, and they get the error.
func TestBatch_FailureRollsBack(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d)
		r := &rows{fail: errWanted}
		give := func(tx db.Querier) error {
			return errors.Join(put(tx, "undone", 1), db.Batch(ctx, tx, r, "undone too"))
		}
		if err := d.Tx(ctx, give); !errors.Is(err, errWanted) {
			t.Errorf("Tx: %v", err)
		}
		if err := d.TxAsync(ctx, give)(); !errors.Is(err, errWanted) {
			t.Errorf("Later: %v", err)
		}
		must(t, d.Tx(ctx, func(tx db.Querier) error { return put(tx, "kept", 1) }))
		if n := count(t, d.Read(ctx)); n != 1 {
			t.Errorf("%d rows, want what followed alone", n)
		}
	})
}

// Functions that share a commit are batched together. Items added before a Tx are written before it.
func TestBatch_SharedCommit(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	table(t, d)
	r := &rows{}
	release := blockWriter(d) // the writer is busy: the following functions share one transaction
	later := func(name string, err error) func() error {
		return d.TxAsync(ctx, func(tx db.Querier) error { return errors.Join(db.Batch(ctx, tx, r, name), err) })
	}
	waits := []func() error{later("a", nil), later("b", nil), later("undone", errWanted), later("c", nil)}
	seen := make(chan int, 1)
	alone := make(chan error, 1)
	go func() {
		alone <- d.Tx(ctx, func(tx db.Querier) error { seen <- count(t, tx); return db.Batch(ctx, tx, r, "d") })
	}()
	release()
	for i, wait := range waits {
		if err := wait(); (i == 2) != errors.Is(err, errWanted) {
			t.Errorf("function %d: %v", i, err)
		}
	}
	must(t, <-alone)
	want := [][]string{{"a", "b", "c"}, {"d"}}
	if n := <-seen; n != 3 || !slices.EqualFunc(r.batches, want, slices.Equal) {
		t.Errorf("Tx saw %d rows, want 3; written %v, want %v", n, r.batches, want)
	}
}
