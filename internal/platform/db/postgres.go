package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// Sizes of the connection pools: for transactions, and for reads outside transactions. A transaction that reads
// outside itself waits for a reader only, and readers wait for no transaction. With a single pool, as many
// transactions as it has connections would deadlock.
const (
	writers = 20
	reading = 12
)

// maxRetries limits the repetitions of a transaction after serialization failures or deadlocks.
const maxRetries = 5

type postgres struct {
	read                              *sql.DB
	pool                              *sql.DB
	transactions, commits, commitTime atomic.Int64
}

func openPostgres(ctx context.Context, address string) (*postgres, error) {
	c, err := connectConfig(ctx, address)
	if err != nil {
		return nil, err
	}
	pool, err := openPool(ctx, c, writers)
	if err != nil {
		return nil, err
	}
	read, err := openPool(ctx, c, reading)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return &postgres{pool: pool, read: read}, nil
}

// connectConfig returns how to connect to an address. Behind a connection pooler such as PgBouncer it uses no prepared statements,
// unless the address has default_query_exec_mode: with pooling by transaction, the next statement may run on another connection of the
// server, which has not prepared it (26000, 42P05).
func connectConfig(ctx context.Context, address string) (*pgx.ConnConfig, error) {
	c, err := pgx.ParseConfig(address)
	if err != nil || strings.Contains(address, "default_query_exec_mode=") {
		return c, err
	}
	pooled, err := isPooled(ctx, c)
	if pooled {
		c.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	return c, err
}

// isPooled reports whether a connection pooler answers in place of PostgreSQL. PostgreSQL tells a client the ID of the process that serves
// it. A pooler makes up a number of its own, for requests to cancel.
func isPooled(ctx context.Context, c *pgx.ConnConfig) (bool, error) {
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var process uint32
	err = conn.QueryRow(ctx, `SELECT pg_backend_pid()`, pgx.QueryExecModeSimpleProtocol).Scan(&process)
	return process != conn.PgConn().PID(), err
}

func openPool(ctx context.Context, c *pgx.ConnConfig, size int) (*sql.DB, error) {
	pool := stdlib.OpenDB(*c)
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	if err := pool.PingContext(ctx); err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return pool, nil
}

// poolQuerier implements Querier for the pool.
type poolQuerier struct{ on *sql.DB }

func (p poolQuerier) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return p.on.ExecContext(ctx, query, args...)
}

func (p poolQuerier) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return p.on.QueryContext(ctx, query, args...)
}

func (p poolQuerier) QueryRow(ctx context.Context, query string, args ...any) *sql.Row {
	return p.on.QueryRowContext(ctx, query, args...)
}

func (p *postgres) reader() Querier              { return poolQuerier{p.read} }
func (p *postgres) shrink(context.Context) error { return nil }
func (p *postgres) forUpdate() string            { return " FOR UPDATE" }
func (p *postgres) skipLocked() string           { return " FOR UPDATE SKIP LOCKED" }
func (p *postgres) close() error                 { return errors.Join(p.pool.Close(), p.read.Close()) }

func (p *postgres) stats() Stats {
	return Stats{p.transactions.Load(), p.commits.Load(), 0, time.Duration(p.commitTime.Load())}
}

// tx repeats fn after a serialization failure or deadlock (40001, 40P01).
func (p *postgres) tx(ctx context.Context, fn func(*transaction) error) error {
	for try := 0; ; try++ {
		err := p.once(ctx, fn)
		if !isSerializationFailure(err) || try == maxRetries {
			return err
		}
	}
}

func (p *postgres) txRelaxed(ctx context.Context, fn func(*transaction) error) error {
	return p.tx(ctx, fn)
}

// txAsync commits before it returns. Later work on another connection would not wait for it.
func (p *postgres) txAsync(ctx context.Context, fn func(*transaction) error) (wait func() error) {
	err := p.tx(ctx, fn)
	return func() error { return err }
}

func (p *postgres) txAsyncThen(ctx context.Context, fn func(*transaction) error, ended func(error)) {
	ended(p.tx(ctx, fn))
}

// begin begins a transaction. Connections that the server has ended, as it does at a restart, are dropped and another one is used: nothing
// was done on them.
func (p *postgres) begin(ctx context.Context) (*sql.Tx, error) {
	for try := 0; ; try++ {
		sqlTx, err := p.pool.BeginTx(ctx, nil)
		if err == nil || ctx.Err() != nil || try == writers || !isDead(err) {
			return sqlTx, err
		}
	}
}

// isDead reports whether BEGIN failed because its connection was ended.
func isDead(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) { // 57P01 to 57P05: ended by an administrator, a crash, or the limit of idle sessions
		return strings.HasPrefix(pg.Code, "57P") && pg.Code != "57P03"
	}
	var refused *pgconn.ConnectError
	return !errors.As(err, &refused)
}

func (p *postgres) once(ctx context.Context, fn func(*transaction) error) error {
	sqlTx, err := p.begin(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", connectionError{err})
	}
	t := &transaction{on: sqlTx}
	err = guarded(t, fn)
	if err == nil {
		err = t.flush(ctx)
	}
	if err != nil {
		return errors.Join(err, ignoreDone(sqlTx.Rollback()))
	}
	start := time.Now()
	if err := sqlTx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", markConnectionError(err))
	}
	p.transactions.Add(1)
	p.commits.Add(1)
	p.commitTime.Add(int64(time.Since(start)))
	t.committed()
	return nil
}

// markConnectionError marks an error of the connection: it is unknown whether the commit was carried out.
func markConnectionError(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) || errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return connectionError{err}
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

func isSerializationFailure(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}
