package db_test

import (
	"errors"
	"testing"

	"soniq/db"
	"soniq/db/dbtest"
)

func TestWhatFollowsLaterComesAfterIt(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d)
		before := d.Stats().Commits
		wait := d.Later(ctx, func(tx db.Querier) error { return put(tx, "first", 1) })
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

func TestLaterIsCommittedThoughNobodyFollows(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d)
		must(t, d.Later(ctx, func(tx db.Querier) error { return put(tx, "alone", 1) })())
		if n := count(t, d.Read(ctx)); n != 1 {
			t.Errorf("%d rows, want 1", n)
		}
		if err := d.Later(ctx, func(db.Querier) error { return errWanted })(); !errors.Is(err, errWanted) {
			t.Errorf("err = %v, want what the function returned", err)
		}
	})
}

// What comes first in a transaction has no savepoint: undoing it must not undo who comes after it.
func TestFirstThatFailsHarmsNobodyBehindIt(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d)
		ran := false
		failed := d.Later(ctx, func(tx db.Querier) error {
			db.OnCommit(tx, func() { ran = true })
			return errors.Join(put(tx, "undone", 1), errWanted)
		})
		kept := d.Later(ctx, func(tx db.Querier) error { return put(tx, "kept", 2) })
		if err := failed(); !errors.Is(err, errWanted) {
			t.Errorf("err = %v, want what the function returned", err)
		}
		must(t, kept())
		if n := count(t, d.Read(ctx)); n != 1 || ran {
			t.Errorf("%d rows, want that of the second alone; hook of the first ran: %v", n, ran)
		}
	})
}

// Functions given to Later share a savepoint: one that fails has the others run again, whose effects and hooks are those of once.
func TestWhoSharesWithOneThatFailsIsRunAgain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d)
		held, hold := make(chan struct{}), make(chan struct{})
		go func() { _ = d.Tx(ctx, func(db.Querier) error { close(held); <-hold; return nil }) }()
		<-held // the writer is busy: what is given to it now is done in one transaction
		hooks := make(chan string, 10)
		later := func(name string, err error) func() error {
			return d.Later(ctx, func(tx db.Querier) error {
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
