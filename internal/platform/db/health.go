package db

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	sqlitedriver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Check writes a fact and commits it. It returns why the database cannot store anything, or nil.
func (d *DB) Check(ctx context.Context) error { return d.engine.check(ctx) }

// LastFault returns the last transaction error that the storage caused, not a statement, and its time. The error is nil if there was none.
func (d *DB) LastFault() (at time.Time, err error) {
	d.faults.mu.Lock()
	defer d.faults.mu.Unlock()
	return d.faults.at, d.faults.last
}

// faults holds the last transaction error that the storage caused.
type faults struct {
	mu   sync.Mutex // guards both
	last error
	at   time.Time
}

// noted records the error of a transaction if the storage caused it, and returns it.
func (d *DB) noted(err error) error {
	if err != nil && isStorageFault(err) {
		d.faults.mu.Lock()
		d.faults.last, d.faults.at = err, time.Now()
		d.faults.mu.Unlock()
	}
	return err
}

// isStorageFault reports whether the database cannot store data: its disk is full, read-only or broken, or it is not reachable.
func isStorageFault(err error) bool {
	var lite *sqlitedriver.Error
	if errors.As(err, &lite) {
		switch lite.Code() & 0xff {
		case sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_CORRUPT,
			sqlite3.SQLITE_NOTADB:
			return true
		}
		return false
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) { // 25006: read-only; 53: resources, such as disk space; 58: system error; XX: damage
		for _, class := range []string{"25006", "53", "58", "XX"} {
			if strings.HasPrefix(pg.Code, class) {
				return true
			}
		}
	}
	var unsynced syncError
	if errors.As(err, &unsynced) {
		return true
	}
	ended := errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	return !ended && IsUnavailable(err)
}

// syncError is a failed fsync of the log of SQLite.
type syncError struct{ error }

func (e syncError) Unwrap() error { return e.error }

// storeCheck stores the fact of Check.
func storeCheck(ctx context.Context, tx Querier) error {
	const text = `INSERT INTO installation (name, value) VALUES ('check', $1) ON CONFLICT (name) DO UPDATE SET value = $1`
	_, err := tx.Exec(ctx, text, strconv.FormatInt(time.Now().UnixMicro(), 10))
	return err
}

// check implements engine. It does not wait for the fsync, which may take long on a busy disk.
func (s *sqlite) check(ctx context.Context) error {
	if err := s.log.fault(); err != nil {
		return err
	}
	return s.txRelaxed(ctx, func(t *transaction) error { return storeCheck(ctx, t) })
}

// check implements engine.
func (p *postgres) check(ctx context.Context) error {
	return p.tx(ctx, func(t *transaction) error { return storeCheck(ctx, t) })
}
