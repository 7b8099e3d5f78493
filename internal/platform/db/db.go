// Package db opens SQLite or PostgreSQL, runs transactions and migrations, and has IDs and column types with the same
// behaviour in both.
package db

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// Querier runs statements: in a transaction, or on a pool of reading connections.
type Querier interface {
	Exec(ctx context.Context, query string, args ...any) (sql.Result, error)
	Query(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRow(ctx context.Context, query string, args ...any) *sql.Row
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	engine engine
	name   string
	faults faults
}

// engine has the operations that differ between SQLite and PostgreSQL.
type engine interface {
	tx(ctx context.Context, fn func(*transaction) error) error
	txRelaxed(ctx context.Context, fn func(*transaction) error) error
	txAsync(ctx context.Context, fn func(*transaction) error) (wait func() error)
	txAsyncThen(ctx context.Context, fn func(*transaction) error, ended func(error))
	reader() Querier
	skipLocked() string
	forUpdate() string
	columnsQuery() string // columns: table, column, is in the primary key; ordered by table
	check(ctx context.Context) error
	shrink(ctx context.Context) error
	stats() Stats
	close() error
}

// Stats holds counters since the database was opened.
type Stats struct {
	Transactions int64         // committed transaction functions
	Commits      int64         // commits; on SQLite many functions share one
	Syncs        int64         // number of fsyncs; SQLite only
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

// Name returns "sqlite" or "postgres".
func (d *DB) Name() string { return d.name }

// Close waits for running transactions and closes all connections.
func (d *DB) Close() error { return d.engine.close() }

// Stats returns the counters since the database was opened.
func (d *DB) Stats() Stats { return d.engine.stats() }

// SkipLocked returns the suffix that lets several nodes claim different rows at the same time. It is empty on SQLite,
// which has one writer. Correctness must not depend on it.
func (d *DB) SkipLocked() string { return d.engine.skipLocked() }

// ForUpdate returns the suffix that locks the read rows until the transaction ends. It is empty on SQLite, which has
// one writer.
func (d *DB) ForUpdate() string { return d.engine.forUpdate() }

// Shrink frees memory that caches pages of the database. They have to be read again later.
func (d *DB) Shrink(ctx context.Context) error { return d.engine.shrink(ctx) }

// Read returns the transaction in the context, or the pool of readers.
func (d *DB) Read(ctx context.Context) Querier {
	if t := current(ctx); t != nil {
		return t
	}
	return d.engine.reader()
}

// Tx runs fn in a transaction and commits if fn returns nil. On SQLite the commit is shared with other functions,
// each in a savepoint of its own, so fn must not wait for anything except SQL. If the context already has a
// transaction, fn runs in a savepoint of it and is rolled back alone if it fails.
func (d *DB) Tx(ctx context.Context, fn func(tx Querier) error) error {
	return d.TxContext(ctx, func(_ context.Context, tx Querier) error { return fn(tx) })
}

// TxContext is Tx for functions that pass the context on: Read and Tx with the inner context stay in the transaction.
func (d *DB) TxContext(ctx context.Context, fn func(ctx context.Context, tx Querier) error) error {
	run := func(t *transaction) error { return fn(context.WithValue(ctx, txKey{}, t), t) }
	if t := current(ctx); t != nil {
		return t.nested(ctx, run)
	}
	return d.noted(d.engine.tx(ctx, run))
}

// TxRelaxed is Tx without waiting for fsync. The transaction survives a process crash, but may be lost in a power
// failure within about 20 ms. Use it for facts that the power failure would end anyway, such as "call answered". On
// PostgreSQL it is Tx.
func (d *DB) TxRelaxed(ctx context.Context, fn func(tx Querier) error) error {
	return d.TxRelaxedContext(ctx, func(_ context.Context, tx Querier) error { return fn(tx) })
}

// TxRelaxedContext is TxRelaxed with an inner context, as TxContext is Tx.
func (d *DB) TxRelaxedContext(ctx context.Context, fn func(ctx context.Context, tx Querier) error) error {
	run := func(t *transaction) error { return fn(context.WithValue(ctx, txKey{}, t), t) }
	if t := current(ctx); t != nil {
		return t.nested(ctx, run)
	}
	return d.noted(d.engine.txRelaxed(ctx, run))
}

// Sync returns when all earlier commits are on disk, including those of TxRelaxed and TxAsync.
func (d *DB) Sync(ctx context.Context) error {
	if _, ok := d.engine.(*sqlite); !ok {
		return nil
	}
	return d.engine.tx(ctx, func(*transaction) error { return nil })
}

// TxAsync is TxRelaxed without waiting: wait returns the result after the commit. Work given to the database after
// TxAsync has returned comes after it. On SQLite the commit may wait a few milliseconds to share it with others; an
// urgent transaction commits it at once. On PostgreSQL TxAsync commits before it returns. fn may run more than once,
// each time with the earlier run undone: if another function in the same savepoint fails, or after a serialization
// failure in PostgreSQL.
func (d *DB) TxAsync(ctx context.Context, fn func(tx Querier) error) (wait func() error) {
	run := func(t *transaction) error { return fn(t) }
	if t := current(ctx); t != nil {
		err := t.nested(ctx, run)
		return func() error { return err }
	}
	result := d.engine.txAsync(ctx, run)
	return func() error { return d.noted(result()) }
}

// TxAsyncThen is TxAsync with a callback: ended gets the result exactly once, possibly before TxAsyncThen returns. On
// SQLite the writer goroutine calls it, so ended must not write or block.
func (d *DB) TxAsyncThen(ctx context.Context, fn func(tx Querier) error, ended func(error)) {
	run := func(t *transaction) error { return fn(t) }
	if t := current(ctx); t != nil {
		ended(t.nested(ctx, run))
		return
	}
	d.engine.txAsyncThen(ctx, run, func(err error) { ended(d.noted(err)) })
}

type txKey struct{}

func current(ctx context.Context) *transaction {
	t, _ := ctx.Value(txKey{}).(*transaction)
	return t
}

// InTx reports whether the context has a transaction.
func InTx(ctx context.Context) bool { return current(ctx) != nil }

// Detached returns a context without the transaction, for work that must not be part of it.
func Detached(ctx context.Context) context.Context {
	return context.WithValue(ctx, txKey{}, (*transaction)(nil))
}

// OnCommit calls f after the transaction behind q is committed, before Tx returns. It does not call f after a
// rollback. Of two transactions, the one that does not wait for the disk may call its functions first. If q is not a
// transaction, f is called at once. f must not block.
func OnCommit(q Querier, f func()) {
	if t, ok := q.(*transaction); ok {
		t.after = append(t.after, f)
		return
	}
	f()
}
