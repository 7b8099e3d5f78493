// Package db keeps the facts: it opens SQLite or PostgreSQL, runs transactions and migrations,
// and gives ids and column types that behave the same in both.
package db

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// A Querier runs statements: a transaction, or a pool of reading connections.
type Querier interface {
	Exec(ctx context.Context, query string, args ...any) (sql.Result, error)
	Query(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRow(ctx context.Context, query string, args ...any) *sql.Row
}

// A DB is an open database. It is safe for concurrent use.
type DB struct {
	engine engine
	name   string
}

// engine is what SQLite and PostgreSQL do differently.
type engine interface {
	tx(ctx context.Context, fn func(*transaction) error) error
	swift(ctx context.Context, fn func(*transaction) error) error
	later(ctx context.Context, fn func(*transaction) error) (wait func() error)
	laterThen(ctx context.Context, fn func(*transaction) error, ended func(error))
	reader() Querier
	skipLocked() string
	forUpdate() string
	columnsQuery() string // table, column, whether it is of the primary key; in the order of tables
	ping(ctx context.Context) error
	shrink(ctx context.Context) error
	stats() Stats
	close() error
}

// Stats counts what the database did since it was opened.
type Stats struct {
	Transactions int64         // functions committed
	Commits      int64         // commits; on SQLite many functions share one
	Syncs        int64         // times the disk was waited for; SQLite only
	CommitTime   time.Duration // total time spent committing
}

// Open opens the database at address: a path to an SQLite file, or postgres://….
// It does not migrate; see Migrate.
func Open(ctx context.Context, address string) (*DB, error) {
	if strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://") {
		e, err := openPostgres(ctx, address)
		if err != nil {
			return nil, fmt.Errorf("open PostgreSQL: %w", err)
		}
		return &DB{engine: e, name: "postgres"}, nil
	}
	e, err := openSQLite(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("open SQLite file %s: %w", address, err)
	}
	return &DB{engine: e, name: "sqlite"}, nil
}

// Name is "sqlite" or "postgres".
func (d *DB) Name() string { return d.name }

// Close waits for running transactions and closes every connection.
func (d *DB) Close() error { return d.engine.close() }

// Ping reports whether the database answers.
func (d *DB) Ping(ctx context.Context) error { return d.engine.ping(ctx) }

// Stats returns what the database did since it was opened.
func (d *DB) Stats() Stats { return d.engine.stats() }

// SkipLocked is the suffix that lets several nodes claim rows side by side; empty on SQLite, which has one
// writer. Correctness never rests on it.
func (d *DB) SkipLocked() string { return d.engine.skipLocked() }

// ForUpdate is the suffix that keeps others from changing the rows that are read until the transaction ends; empty on SQLite, which has
// one writer anyway.
func (d *DB) ForUpdate() string { return d.engine.forUpdate() }

// Shrink gives back memory that holds pages of the database for later use. It costs reading them again.
func (d *DB) Shrink(ctx context.Context) error { return d.engine.shrink(ctx) }

// Read returns what to read with: the transaction the context carries, or the pool of readers.
func (d *DB) Read(ctx context.Context) Querier {
	if t := current(ctx); t != nil {
		return t
	}
	return d.engine.reader()
}

// Tx runs fn in a transaction and commits when it returns nil. On SQLite it shares its commit with other
// functions, each in a savepoint of its own, so fn must wait for nothing but SQL. Inside a transaction the
// context already carries, fn joins it and is rolled back alone when it fails.
func (d *DB) Tx(ctx context.Context, fn func(tx Querier) error) error {
	return d.TxContext(ctx, func(_ context.Context, tx Querier) error { return fn(tx) })
}

// TxContext is Tx for functions that call others by context: Read and Tx with the context it gives stay
// inside the transaction.
func (d *DB) TxContext(ctx context.Context, fn func(ctx context.Context, tx Querier) error) error {
	run := func(t *transaction) error { return fn(context.WithValue(ctx, txKey{}, t), t) }
	if t := current(ctx); t != nil {
		return t.nested(ctx, run)
	}
	return d.engine.tx(ctx, run)
}

// Swift is Tx for what must outlive the process, and need not outlive a power cut within the next 20 ms or so, because what it tells
// of would not: that a call was answered. On SQLite it does not wait for the disk; on PostgreSQL it is Tx.
func (d *DB) Swift(ctx context.Context, fn func(tx Querier) error) error {
	return d.SwiftContext(ctx, func(_ context.Context, tx Querier) error { return fn(tx) })
}

// SwiftContext is Swift for functions that call others by context, as TxContext is Tx.
func (d *DB) SwiftContext(ctx context.Context, fn func(ctx context.Context, tx Querier) error) error {
	run := func(t *transaction) error { return fn(context.WithValue(ctx, txKey{}, t), t) }
	if t := current(ctx); t != nil {
		return t.nested(ctx, run)
	}
	return d.engine.swift(ctx, run)
}

// Settled returns when the disk has all that was committed before, by Swift and Later too.
func (d *DB) Settled(ctx context.Context) error {
	if _, ok := d.engine.(*sqlite); !ok {
		return nil
	}
	return d.engine.tx(ctx, func(*transaction) error { return nil })
}

// Later is Swift for what nobody waits for at once: wait returns when it is committed, or has failed. What is given to the database
// after Later has returned comes after it. On SQLite it returns at once, and the commit may wait a few milliseconds for others
// to share it with; whoever is in a hurry takes it along. fn may be run more than once, each time in place of the time before: where another
// fails that it shares a savepoint with, or loses a race inside PostgreSQL.
func (d *DB) Later(ctx context.Context, fn func(tx Querier) error) (wait func() error) {
	run := func(t *transaction) error { return fn(t) }
	if t := current(ctx); t != nil {
		err := t.nested(ctx, run)
		return func() error { return err }
	}
	return d.engine.later(ctx, run)
}

// LaterThen is Later for who need not wait at all: ended is told once what became of it, perhaps before LaterThen returns. On SQLite it is the
// writer who tells, so ended must neither write nor wait for anything.
func (d *DB) LaterThen(ctx context.Context, fn func(tx Querier) error, ended func(error)) {
	run := func(t *transaction) error { return fn(t) }
	if t := current(ctx); t != nil {
		ended(t.nested(ctx, run))
		return
	}
	d.engine.laterThen(ctx, run, ended)
}

type txKey struct{}

func current(ctx context.Context) *transaction {
	t, _ := ctx.Value(txKey{}).(*transaction)
	return t
}

// InTx reports whether the context carries a transaction.
func InTx(ctx context.Context) bool { return current(ctx) != nil }

// Detached returns a context that no longer carries a transaction: for what must happen by itself.
func Detached(ctx context.Context) context.Context {
	return context.WithValue(ctx, txKey{}, (*transaction)(nil))
}

// OnCommit calls f once the transaction behind q is committed, and never when it is rolled back: before Tx returns, so that of two transactions
// the one that does not wait for the disk may call its own first.
// Where q is no transaction f is called at once. f must not wait.
func OnCommit(q Querier, f func()) {
	if t, ok := q.(*transaction); ok {
		t.after = append(t.after, f)
		return
	}
	f()
}
