package dbtest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"soniq/db"
)

// Postgres makes an empty database on the server at address, which must let us do so, and returns its address.
func Postgres(t testing.TB, address string) string {
	t.Helper()
	return create(t, address, "template1")
}

// migratedPostgres is Postgres with the newest schema: a copy of a database that was migrated once on this server.
func migratedPostgres(t testing.TB, address string) string {
	t.Helper()
	from, err := template(address)
	if err != nil {
		t.Fatal(err)
	}
	return create(t, address, from)
}

// CreatePostgres makes an empty database on the server at address. It returns its address and a function that drops it.
func CreatePostgres(ctx context.Context, address string) (made string, remove func() error, err error) {
	return copyOf(ctx, address, "template1")
}

// create copies a database for the time of a test.
func create(t testing.TB, address, from string) string {
	t.Helper()
	made, remove, err := copyOf(t.Context(), address, from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remove(); err != nil {
			t.Error(err)
		}
	})
	return made
}

// copyOf copies a database of the server at address.
func copyOf(ctx context.Context, address, from string) (made string, remove func() error, err error) {
	admin, err := sql.Open("pgx", address)
	if err != nil {
		return "", nil, err
	}
	name := strings.ToLower(db.NewID("t"))
	if _, err := admin.ExecContext(ctx, "CREATE DATABASE "+name+" TEMPLATE "+from+" STRATEGY file_copy"); err != nil {
		return "", nil, errors.Join(err, admin.Close())
	}
	return at(address, name), func() error { return errors.Join(drop(admin, name), admin.Close()) }, nil
}

// at is the address of another database of the same server.
func at(address, name string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.Path = "/" + name
	return u.String()
}

var templates sync.Map // by the server's address: func() (name string, err error), which works once

// template is the name of a migrated database on the server, from which nobody reads but those who copy it.
func template(address string) (string, error) {
	once, _ := templates.LoadOrStore(address, sync.OnceValues(func() (string, error) { return makeTemplate(address) }))
	return once.(func() (string, error))()
}

// makeTemplate makes it, unless another process has: it is named by the migrations it holds, and gets that name when it is ready.
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
	one, err := admin.Conn(context.Background()) // the lock is its own, and ends with it
	if err != nil {
		return "", err
	}
	defer one.Close()
	var there bool
	if _, err := one.ExecContext(context.Background(), `SELECT pg_advisory_lock(7266448)`); err != nil {
		return "", err
	}
	if err := one.QueryRowContext(context.Background(), `SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)`, name).Scan(&there); err != nil || there {
		return name, err
	}
	making := strings.ToLower(db.NewID("m"))
	if _, err := admin.Exec("CREATE DATABASE " + making + " STRATEGY file_copy"); err != nil {
		return "", err
	}
	if err := migrate(at(address, making)); err != nil {
		return "", errors.Join(err, drop(admin, making))
	}
	_, err = admin.Exec("ALTER DATABASE " + making + " RENAME TO " + name)
	return name, err
}

func drop(admin *sql.DB, name string) error {
	_, err := admin.Exec("DROP DATABASE " + name + " WITH (FORCE)")
	return err
}
