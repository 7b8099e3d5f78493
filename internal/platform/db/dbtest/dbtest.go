// Package dbtest opens fresh databases for tests: an SQLite file, and a PostgreSQL database if a server is
// configured.
package dbtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"soniq/internal/platform/db"
)

// Each runs the test on SQLite and, if SONIQ_TEST_POSTGRES has an address, on PostgreSQL, each time on an empty,
// migrated database. SONIQ_TEST_DATABASE=postgres skips SQLite, which another run of the tests covers.
func Each(t *testing.T, run func(t *testing.T, d *db.DB)) {
	t.Helper()
	if !postgresOnly() {
		t.Run("sqlite", func(t *testing.T) { run(t, SQLite(t)) })
	}
	if address := os.Getenv("SONIQ_TEST_POSTGRES"); address != "" {
		t.Run("postgres", func(t *testing.T) { run(t, open(t, migratedPostgres(t, address))) })
	}
}

// postgresOnly reports whether this run covers PostgreSQL only.
func postgresOnly() bool { return os.Getenv("SONIQ_TEST_DATABASE") == "postgres" }

// SkipOnPostgres skips a test of another run if this run covers PostgreSQL only.
func SkipOnPostgres(t testing.TB) {
	t.Helper()
	if postgresOnly() {
		t.Skip("runs with SQLite, in another part of the suite")
	}
}

// SQLite opens an empty, migrated SQLite database, a copy of one that was migrated once. In a run for PostgreSQL only
// it skips the test.
func SQLite(t testing.TB) *db.DB {
	t.Helper()
	SkipOnPostgres(t)
	file, err := migratedSQLite()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "soniq.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	return open(t, path)
}

func open(t testing.TB, address string) *db.DB {
	t.Helper()
	d, err := db.Open(context.Background(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// migratedSQLite returns the file of an empty, migrated database.
var migratedSQLite = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "soniq-dbtest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "soniq.db")
	if err := migrate(path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// migrate applies all migrations to the database at address and closes it, so that an SQLite database is a single
// file.
func migrate(address string) error {
	d, err := db.Open(context.Background(), address)
	if err != nil {
		return err
	}
	_, err = d.Migrate(context.Background())
	return errors.Join(err, d.Close())
}
