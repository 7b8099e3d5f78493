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
