package db

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	sqlitedriver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrNone is returned if a statement found no row.
var ErrNone = sql.ErrNoRows

// IsNone reports whether the error means that no row was found.
func IsNone(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// ErrConflict is returned for a violation of a unique rule that no constraint of the database expresses.
var ErrConflict = errors.New("the value is taken")

// IsConflict reports whether the error is a violation of a unique constraint, or ErrConflict.
func IsConflict(err error) bool {
	return errors.Is(err, ErrConflict) || hasCode(err, "23505", sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// IsForeignKey reports whether the error is a violation of a foreign key: a missing referenced row, or a row that is
// still referenced.
func IsForeignKey(err error) bool { return hasCode(err, "23503", sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY) }

// IsFull reports whether the error means that the disk is full.
func IsFull(err error) bool { return hasCode(err, "53100", sqlite3.SQLITE_FULL) }

// IsReadOnly reports whether the error means that the database refuses all changes.
func IsReadOnly(err error) bool {
	return hasCode(err, "25006", sqlite3.SQLITE_READONLY, sqlite3.SQLITE_READONLY_DIRECTORY, sqlite3.SQLITE_READONLY_DBMOVED)
}

// IsUnavailable reports whether the error means that the database is unreachable or shutting down, and not an error
// of a statement.
func IsUnavailable(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) { // 08: connection exceptions; 57P: shutdown, or not started yet; 53300: too many connections
		return strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "57P") || pg.Code == "53300"
	}
	var marked connectionError
	if errors.As(err, &marked) {
		return true
	}
	var client *url.Error // an error of an HTTP client
	var file *fs.PathError
	var link *os.LinkError
	if errors.As(err, &client) || errors.As(err, &file) || errors.As(err, &link) {
		return false
	}
	var network net.Error
	var refused *pgconn.ConnectError
	return errors.As(err, &network) || errors.As(err, &refused) || errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, ErrClosed)
}

// connectionError is an error of the connection to the database.
type connectionError struct{ error }

func (e connectionError) Unwrap() error { return e.error }

func hasCode(err error, postgres string, sqlite ...int) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == postgres
	}
	var lite *sqlitedriver.Error
	if !errors.As(err, &lite) {
		return false
	}
	for _, code := range sqlite {
		if lite.Code() == code {
			return true
		}
	}
	return false
}
