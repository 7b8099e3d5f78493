package db

import (
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	sqlitedriver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrNone is returned where a statement found no row.
var ErrNone = sql.ErrNoRows

// IsNone reports whether err says that no row was found.
func IsNone(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// IsConflict reports whether err says that a unique value exists already.
func IsConflict(err error) bool {
	return hasCode(err, "23505", sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// IsForeignKey reports whether err says that a reference points to nothing, or that something is still
// referred to.
func IsForeignKey(err error) bool { return hasCode(err, "23503", sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY) }

// IsFull reports whether err says that the disk is full.
func IsFull(err error) bool { return hasCode(err, "53100", sqlite3.SQLITE_FULL) }

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
