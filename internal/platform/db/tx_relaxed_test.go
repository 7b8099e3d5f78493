package db_test

import (
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// Tx returns after the fsync. A TxRelaxed transaction is on disk a moment later.
func TestTxRelaxed_WithoutSync(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table(t, d)
		before := d.Stats().Syncs
		must(t, d.TxRelaxed(ctx, func(tx db.Querier) error { return put(tx, "swift", 1) }))
		if n := count(t, d.Read(ctx)); n != 1 {
			t.Errorf("%d rows to be read, want 1", n)
		}
		if d.Name() != "sqlite" {
			return
		}
		look := time.NewTicker(time.Millisecond)
		defer look.Stop()
		for patience := time.After(2 * time.Minute); d.Stats().Syncs == before; {
			select {
			case <-look.C:
			case <-patience:
				t.Fatal("what was written swiftly never came to the disk")
			}
		}
		before = d.Stats().Syncs
		must(t, d.Tx(ctx, func(tx db.Querier) error { return put(tx, "sure", 2) }))
		if n := d.Stats().Syncs - before; n < 1 {
			t.Errorf("%d times the disk was waited for, want 1", n)
		}
	})
}

func TestSync_Durable(t *testing.T) {
	d := dbtest.SQLite(t)
	table(t, d)
	must(t, d.TxRelaxed(ctx, func(tx db.Querier) error { return put(tx, "a", 1) }))
	before := d.Stats().Syncs
	must(t, d.Sync(ctx))
	if d.Stats().Syncs == before {
		t.Error("the disk was not waited for")
	}
}
