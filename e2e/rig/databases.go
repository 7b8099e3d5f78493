package rig

import (
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"

	"soniq/internal/platform/db/pgtest"
)

// Each runs a test against a server of its own on SQLite, and on PostgreSQL when SONIQ_TEST_POSTGRES names one. It is
// for tests whose claim depends on the database: crashes, migrations, retention, search.
func Each(t *testing.T, o Options, run func(t *testing.T, s *Server)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { run(t, Start(t, o)) })
	if address := os.Getenv("SONIQ_TEST_POSTGRES"); address != "" {
		t.Run("postgres", func(t *testing.T) {
			o := o
			o.DB = pgtest.New(t, address)
			run(t, Start(t, o))
		})
	}
}

// Node starts a node on a PostgreSQL database that the nodes of the test share. The first one is made without others; its database and
// master key are given to the next ones. It skips the test without PostgreSQL.
func Node(t *testing.T, o Options, others ...*Server) *Server {
	t.Helper()
	address := os.Getenv("SONIQ_TEST_POSTGRES")
	if address == "" {
		t.Skip("several nodes need PostgreSQL: SONIQ_TEST_POSTGRES is not set")
	}
	o.Data = t.TempDir()
	if len(others) == 0 {
		o.DB = pgtest.New(t, address)
		return Start(t, o)
	}
	o.DB = others[0].DB
	key, err := os.ReadFile(filepath.Join(others[0].Data, "master.key"))
	if err == nil {
		err = os.WriteFile(filepath.Join(o.Data, "master.key"), key, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return Start(t, o)
}

// Either runs a test against a shared server on SQLite or on PostgreSQL: the name of the test selects the database,
// half of the tests use each. It is for claims that do not depend on the database; unit tests run every SQL statement
// on both. With SONIQ_SOAK, as in `make soak`, it runs on both.
func Either(t *testing.T, o Options, run func(t *testing.T, s *Server)) {
	t.Helper()
	address := os.Getenv("SONIQ_TEST_POSTGRES")
	both := os.Getenv("SONIQ_SOAK") != ""
	if address == "" || both || !onPostgres(t.Name()) {
		t.Run("sqlite", func(t *testing.T) { run(t, Shared(t, o)) })
	}
	if address != "" && (both || onPostgres(t.Name())) {
		t.Run("postgres", func(t *testing.T) {
			o := o
			if o.DB = address; o.Alone {
				o.DB = pgtest.New(t, address)
			}
			run(t, Shared(t, o))
		})
	}
}

// Both runs a test against a shared server on SQLite, and against one on PostgreSQL when SONIQ_TEST_POSTGRES names one. It is for journeys
// whose claim is what they leave in the database.
func Both(t *testing.T, o Options, run func(t *testing.T, s *Server)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { run(t, Shared(t, o)) })
	if address := os.Getenv("SONIQ_TEST_POSTGRES"); address != "" {
		t.Run("postgres", func(t *testing.T) {
			o := o
			o.DB = address
			run(t, Shared(t, o))
		})
	}
}

// EitherDB returns the DB of Options for Shared: PostgreSQL for half of the tests, which their names select as in Either, else SQLite.
func EitherDB(t *testing.T) string {
	if address := os.Getenv("SONIQ_TEST_POSTGRES"); onPostgres(t.Name()) {
		return address
	}
	return ""
}

// OwnDB returns the DB of Options for Start: a new database on PostgreSQL for half of the tests, as EitherDB does, else SQLite.
func OwnDB(t *testing.T) string {
	t.Helper()
	if address := EitherDB(t); address != "" {
		return pgtest.New(t, address)
	}
	return ""
}

// onPostgres reports whether Either runs a test on PostgreSQL.
func onPostgres(name string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return h.Sum32()%2 == 1
}
