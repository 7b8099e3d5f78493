// Package dbtest opens fresh databases for tests: an SQLite file, and PostgreSQL where there is one.
package dbtest

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"soniq/db"
)

// Each runs the test on SQLite and, when SONIQ_TEST_POSTGRES holds an address, on PostgreSQL, each time on
// an empty, migrated database.
func Each(t *testing.T, run func(t *testing.T, d *db.DB)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { run(t, open(t, filepath.Join(t.TempDir(), "soniq.db"))) })
	if address := os.Getenv("SONIQ_TEST_POSTGRES"); address != "" {
		t.Run("postgres", func(t *testing.T) { run(t, open(t, Postgres(t, address))) })
	}
}

// SQLite opens an empty, migrated SQLite database.
func SQLite(t testing.TB) *db.DB {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "soniq.db"))
}

func open(t testing.TB, address string) *db.DB {
	t.Helper()
	d, err := db.Open(context.Background(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if _, err := d.Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	return d
}

// Postgres makes an empty schema in the database at address and returns an address that uses it.
func Postgres(t testing.TB, address string) string {
	t.Helper()
	admin, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	schema := strings.ToLower(db.NewID("t"))
	if _, err := admin.Exec("CREATE SCHEMA " + schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = admin.Exec("DROP SCHEMA " + schema + " CASCADE")
		_ = admin.Close()
	})
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String()
}
