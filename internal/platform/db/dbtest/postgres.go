package dbtest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/pgtest"
)

// Postgres creates an empty database on the server at address, and returns its address. The user needs the right
// CREATEDB.
func Postgres(t testing.TB, address string) string {
	t.Helper()
	return pgtest.New(t, address)
}

// migratedPostgres is Postgres with all migrations: a copy of a database that was migrated once on this server.
func migratedPostgres(t testing.TB, address string) string {
	t.Helper()
	from, err := template(address)
	if err != nil {
		t.Fatal(err)
	}
	return pgtest.Copy(t, address, from)
}

var templates sync.Map // server address to func() (name string, err error), which runs once

// template returns the name of a migrated database on the server. It is only used as a template for copies.
func template(address string) (string, error) {
	once, _ := templates.LoadOrStore(address, sync.OnceValues(func() (string, error) { return makeTemplate(address) }))
	return once.(func() (string, error))()
}

// makeTemplate creates the template unless another process has. Its name is a hash of the migrations, and is set when
// it is complete.
func makeTemplate(address string) (string, error) {
	all, err := db.Migrations()
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("soniq_%x", sha256.Sum256(fmt.Append(nil, all)))[:30]
	admin, err := sql.Open("pgx", address)
	if err != nil {
		return "", err
	}
	defer admin.Close()
	one, err := admin.Conn(context.Background()) // the lock belongs to this connection and ends with it
	if err != nil {
		return "", err
	}
	defer one.Close()
	var there bool
	if _, err := one.ExecContext(context.Background(), `SELECT pg_advisory_lock(7266448)`); err != nil {
		return "", err
	}
	if err := one.QueryRowContext(context.Background(), `SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)`,
		name).Scan(&there); err != nil || there {
		return name, err
	}
	making := pgtest.Name("m")
	if _, err := admin.Exec("CREATE DATABASE " + making + " STRATEGY file_copy"); err != nil {
		return "", err
	}
	if err := migrate(pgtest.At(address, making)); err != nil {
		return "", errors.Join(err, pgtest.Drop(admin, making))
	}
	_, err = admin.Exec("ALTER DATABASE " + making + " RENAME TO " + name)
	return name, err
}
