package db_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"soniq/internal/platform/db"
)

var update = flag.Bool("update", false, "rewrite schema/sqlite.sql")

// TestGoldenSchema_SameAsMigrations migrates one SQLite database step by step and creates another: their schema, in its order, and their
// rows are the same. make golden rewrites the schema.
func TestGoldenSchema_SameAsMigrations(t *testing.T) {
	t.Parallel()
	open := func() *db.DB {
		d, err := db.Open(ctx, filepath.Join(t.TempDir(), "x.db"))
		must(t, err)
		t.Cleanup(func() { must(t, d.Close()) })
		return d
	}
	migrated := open()
	must(t, migrated.MigrateByStep(ctx))
	want := contents(t, migrated)
	if *update {
		must(t, os.WriteFile("schema/sqlite.sql", []byte(schemaHeader+script(want)), 0o644))
		return // the embedded schema is the old one
	}
	created := open()
	done, err := created.Migrate(ctx)
	must(t, err)
	all, err := db.Migrations()
	must(t, err)
	if open, err := created.Pending(ctx); len(done) != len(all) || len(open) > 0 || err != nil {
		t.Errorf("%d of %d migrations are recorded, %d are pending: %v", len(done), len(all), len(open), err)
	}
	got := contents(t, created)
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || got[i] != want[i] {
			t.Fatalf("the created schema differs from line %d on; after a new migration: make golden\ncreated  %q\nmigrated %q", i,
				got[min(i, len(got)):min(i+1, len(got))], want[min(i, len(want)):min(i+1, len(want))])
		}
	}
}

const schemaHeader = "-- The schema after all migrations, in the order in which they make it. Written by make golden; do not edit.\n"

// contents returns the statements that make the schema of a database, in its order, and those that insert its rows. Rows of the table
// migrations are left out.
func contents(t *testing.T, d *db.DB) (statements []string) {
	t.Helper()
	statements = column(t, d, `SELECT COALESCE(sql, '-- ' || name) FROM sqlite_master WHERE tbl_name <> 'migrations' ORDER BY rowid`)
	for _, table := range column(t, d, `SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'migrations' ORDER BY rowid`) {
		columns := column(t, d, `SELECT name FROM pragma_table_info('`+table+`') ORDER BY cid`)
		values := `SELECT quote(` + strings.Join(columns, `) || ', ' || quote(`) + `) FROM ` + table
		for _, row := range column(t, d, values) {
			statements = append(statements, "INSERT INTO "+table+" ("+strings.Join(columns, ", ")+") VALUES ("+row+")")
		}
	}
	return statements
}

// column returns the rows of a query with one column.
func column(t *testing.T, d *db.DB, query string) (all []string) {
	t.Helper()
	rows, err := d.Read(ctx).Query(ctx, query)
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var x string
		must(t, rows.Scan(&x))
		all = append(all, x)
	}
	must(t, rows.Err())
	return all
}

// script joins statements to one text. It leaves out the comments, which stand for indexes that SQLite creates itself.
func script(statements []string) string {
	made := slices.DeleteFunc(slices.Clone(statements), func(s string) bool { return strings.HasPrefix(s, "-- ") })
	return strings.Join(made, ";\n") + ";\n"
}
