// Package pgtest creates databases on a PostgreSQL server for tests. It links no other database driver.
package pgtest

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// New creates an empty database on the server at address, and returns its address. The user needs the right CREATEDB.
func New(t testing.TB, address string) string {
	t.Helper()
	return Copy(t, address, "template1")
}

// Create creates an empty database on the server at address. It returns the database's address and a function that
// drops it.
func Create(address string) (made string, drop func() error, err error) {
	return copyOf(address, "template1")
}

// Copy copies a database of the server for the duration of a test, and returns the address of the copy.
func Copy(t testing.TB, address, from string) string {
	t.Helper()
	made, drop, err := copyOf(address, from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := drop(); err != nil {
			t.Error(err)
		}
	})
	return made
}

// copyOf copies a database of the server at address.
func copyOf(address, from string) (made string, drop func() error, err error) {
	admin, err := sql.Open("pgx", address)
	if err != nil {
		return "", nil, err
	}
	name := Name("t")
	if _, err := admin.Exec("CREATE DATABASE " + name + " TEMPLATE " + from + " STRATEGY file_copy"); err != nil {
		return "", nil, errors.Join(err, admin.Close())
	}
	return At(address, name), func() error { return errors.Join(Drop(admin, name), admin.Close()) }, nil
}

// Name returns a random name for a database.
func Name(prefix string) string { return strings.ToLower(prefix + "_" + rand.Text()) }

// At returns the address of another database of the same server.
func At(address, name string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.Path = "/" + name
	return u.String()
}

// Drop drops a database and terminates the connections to it.
func Drop(admin *sql.DB, name string) error {
	_, err := admin.Exec("DROP DATABASE " + name + " WITH (FORCE)")
	return err
}
