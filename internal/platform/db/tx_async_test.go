package db_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

func TestTxAsync_Order(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d)
		before := d.Stats().Commits
		wait := d.TxAsync(ctx, func(tx db.Querier) error { return put(tx, "first", 1) })
		must(t, d.Tx(ctx, func(tx db.Querier) error {
			if n := count(t, tx); n != 1 {
				t.Errorf("%d rows before the second, want 1", n)
			}
			return put(tx, "second", 2)
		}))
		must(t, wait())
		if n := d.Stats().Commits - before; d.Name() == "sqlite" && n != 1 {
			t.Errorf("%d commits, want one that both share", n)
		}
	})
}

func TestTxAsync_CommitsAlone(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d)
		must(t, d.TxAsync(ctx, func(tx db.Querier) error { return put(tx, "alone", 1) })())
		if n := count(t, d.Read(ctx)); n != 1 {
			t.Errorf("%d rows, want 1", n)
		}
		if err := d.TxAsync(ctx, func(db.Querier) error { return errWanted })(); !errors.Is(err, errWanted) {
			t.Errorf("err = %v, want what the function returned", err)
		}
	})
}

func TestTxAsyncThen_ResultOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d)
		hooked := false
		told := make(chan error, 2)
		d.TxAsyncThen(ctx, func(tx db.Querier) error {
			db.OnCommit(tx, func() { hooked = true })
			return put(tx, "written", 1)
		}, func(err error) {
			if !hooked {
				t.Error("told before what hangs on the commit")
			}
			told <- err
		})
		must(t, <-told)
		if n := count(t, d.Read(ctx)); n != 1 {
			t.Errorf("%d rows, want 1", n)
		}
		d.TxAsyncThen(ctx, func(tx db.Querier) error {
			return errors.Join(put(tx, "undone", 2), errWanted)
		}, func(err error) { told <- err })
		if err := <-told; !errors.Is(err, errWanted) {
			t.Errorf("err = %v, want what the function returned", err)
		}
		gone, cancel := context.WithCancel(ctx)
		cancel()
		d.TxAsyncThen(gone, func(tx db.Querier) error { return put(tx, "too late", 3) }, func(err error) { told <- err })
		if err := <-told; !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v, want that the context has ended", err)
		}
		err := d.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
			d.TxAsyncThen(ctx, func(tx db.Querier) error { return put(tx, "inside", 4) }, func(err error) { told <- err })
			if len(told) != 1 {
				t.Error("not told at once inside a transaction")
			}
			return nil
		})
		must(t, errors.Join(err, <-told))
		if n := count(t, d.Read(ctx)); n != 2 || len(told) > 0 {
			t.Errorf("%d rows, want 2; told %d times too often", n, len(told))
		}
	})
}

// Every function given during Close gets a result.
func TestTxAsyncThen_ResultDuringClose(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d)
		const givers, each = 8, 200
		told := make(chan error, 2*givers*each)
		var all sync.WaitGroup
		for range givers {
			all.Go(func() {
				for range each {
					d.TxAsyncThen(ctx, func(db.Querier) error { return nil }, func(err error) { told <- err })
				}
			})
		}
		for range each {
			<-told
		}
		must(t, d.Close())
		all.Wait()
		for range givers*each - each {
			<-told
		}
		if len(told) > 0 {
			t.Errorf("%d were told twice", len(told))
		}
	})
}

// The first function of a transaction has no savepoint. Undoing it must not undo the next one.
func TestTxAsync_FirstFailureKeepsSecond(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d)
		ran := false
		failed := d.TxAsync(ctx, func(tx db.Querier) error {
			db.OnCommit(tx, func() { ran = true })
			return errors.Join(put(tx, "undone", 1), errWanted)
		})
		kept := d.TxAsync(ctx, func(tx db.Querier) error { return put(tx, "kept", 2) })
		if err := failed(); !errors.Is(err, errWanted) {
			t.Errorf("err = %v, want what the function returned", err)
		}
		must(t, kept())
		if n := count(t, d.Read(ctx)); n != 1 || ran {
			t.Errorf("%d rows, want that of the second alone; hook of the first ran: %v", n, ran)
		}
	})
}

// Functions of TxAsync share a savepoint. If one fails, the others run again, with their effects and hooks once.
func TestTxAsync_SharedSavepointReruns(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d)
		held, hold := make(chan struct{}), make(chan struct{})
		go func() { _ = d.Tx(ctx, func(db.Querier) error { close(held); <-hold; return nil }) }()
		<-held // the writer is busy: the following functions share one transaction
		hooks := make(chan string, 10)
		later := func(name string, err error) func() error {
			return d.TxAsync(ctx, func(tx db.Querier) error {
				db.OnCommit(tx, func() { hooks <- name })
				return errors.Join(put(tx, name, 1), err)
			})
		}
		before := []func() error{later("a", nil), later("b", nil)}
		alone := make(chan error, 1)
		given := make(chan struct{})
		go func() { close(given); alone <- d.Tx(ctx, func(tx db.Querier) error { return put(tx, "tx", 1) }) }()
		<-given
		behind := []func() error{later("c", nil), later("d", errWanted), later("e", nil), later("f", errWanted), later("g", nil)}
		close(hold)
		for i, wait := range append(before, behind...) {
			if err := wait(); (i == 3 || i == 5) != errors.Is(err, errWanted) {
				t.Errorf("function %d: %v", i, err)
			}
		}
		must(t, <-alone)
		close(hooks)
		told := map[string]int{}
		for name := range hooks {
			told[name]++
		}
		if n := count(t, d.Read(ctx)); n != 6 || len(told) != 5 || told["a"] != 1 || told["c"] != 1 || told["e"] != 1 || told["d"] != 0 {
			t.Errorf("%d rows, want 6; hooks %v", n, told)
		}
	})
}
