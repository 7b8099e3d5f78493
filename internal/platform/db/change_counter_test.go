package db_test

import (
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

func TestChangeCounter_Commits(t *testing.T) {
	d := dbtest.SQLite(t)
	table(t, d)
	things, others := d.ChangeCounter("things"), d.ChangeCounter("elsewhere", "nowhere")
	was, other := things.Value(), others.Value()
	changed := func(doing string, want bool) {
		t.Helper()
		now := things.Value()
		if (now != was) != want {
			t.Errorf("%s: changed from %d to %d, want a change: %v", doing, was, now, want)
		}
		was = now
	}
	run := func(text string, args ...any) {
		t.Helper()
		must(t, d.Tx(ctx, func(tx db.Querier) error { _, err := tx.Exec(ctx, text, args...); return err }))
	}
	must(t, d.Tx(ctx, func(tx db.Querier) error { return put(tx, "a", 1) }))
	changed("insert", true)
	run(`INSERT INTO things (id, n) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET n = excluded.n`, "a", 2)
	changed("upsert", true)
	run("UPDATE things\n\tSET n = $1", 3)
	changed("update", true)
	var n int
	must(t, d.Tx(ctx, func(tx db.Querier) error { return tx.QueryRow(ctx, `UPDATE things SET n = 4 RETURNING n`).Scan(&n) }))
	changed("update that returns", true)
	must(t, d.TxAsync(ctx, func(tx db.Querier) error { return put(tx, "b", 1) })())
	changed("later", true)
	must(t, d.Tx(ctx, func(tx db.Querier) error { n = count(t, tx); return nil }))
	changed("reading", false)
	run(`DELETE FROM things`)
	changed("deletion without arguments", true)
	if others.Value() != other {
		t.Error("the mark of other tables has changed")
	}
}

func TestChangeCounter_BeforeOnCommit(t *testing.T) {
	d := dbtest.SQLite(t)
	table(t, d)
	m := d.ChangeCounter("things")
	was := m.Value()
	must(t, d.Tx(ctx, func(tx db.Querier) error {
		db.OnCommit(tx, func() {
			if m.Value() == was {
				t.Error("told of a commit before the mark has changed")
			}
		})
		return put(tx, "a", 1)
	}))
}
