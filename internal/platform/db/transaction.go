package db

import (
	"context"
	"database/sql"
	"fmt"
	"runtime/debug"
	"strconv"
)

// statements is the part of database/sql a transaction needs.
type statements interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// A transaction is used by one goroutine at a time.
type transaction struct {
	on       statements
	after    []func() // called after commit
	gathered []gathered
	depth    int
}

// A caller who goes away must not interrupt a statement: SQLite would roll back the whole group commit.
func (t *transaction) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return t.on.ExecContext(context.WithoutCancel(ctx), query, args...)
}

func (t *transaction) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return t.on.QueryContext(context.WithoutCancel(ctx), query, args...)
}

func (t *transaction) QueryRow(ctx context.Context, query string, args ...any) *sql.Row {
	return t.on.QueryRowContext(context.WithoutCancel(ctx), query, args...)
}

// nested runs fn in a savepoint: when fn fails, what it did is undone and the transaction goes on.
func (t *transaction) nested(ctx context.Context, fn func(*transaction) error) error {
	t.depth++
	defer func() { t.depth-- }()
	name := "s" + strconv.Itoa(t.depth)
	if err := t.run(ctx, "SAVEPOINT "+name); err != nil {
		return brokenError{err}
	}
	kept, given := len(t.after), len(t.gathered)
	if err := guarded(t, fn); err != nil {
		t.after, t.gathered = t.after[:kept], t.gathered[:given]
		if undo := t.run(ctx, "ROLLBACK TO "+name); undo != nil {
			return brokenError{fmt.Errorf("%w (and undoing it: %v)", err, undo)}
		}
		if undo := t.run(ctx, "RELEASE "+name); undo != nil {
			return brokenError{undo}
		}
		return err
	}
	if err := t.run(ctx, "RELEASE "+name); err != nil {
		return brokenError{err}
	}
	return nil
}

// first is nested for what comes first in a transaction of SQLite: it needs no savepoint, which keeps a copy of every page
// that is changed after it, for there is nothing before that undoing it could harm.
func (t *transaction) first(ctx context.Context, fn func(*transaction) error) error {
	err := guarded(t, fn)
	if err == nil {
		return nil
	}
	t.after, t.gathered = nil, nil
	_ = t.run(ctx, "ROLLBACK") // fails where the error has ended the transaction already
	if undo := t.run(ctx, "BEGIN IMMEDIATE"); undo != nil {
		return brokenError{fmt.Errorf("%w (and beginning anew: %v)", err, undo)}
	}
	return err
}

// run runs one of the texts that begin and end transactions and savepoints.
func (t *transaction) run(ctx context.Context, text string) error {
	ctx = context.WithoutCancel(ctx)
	if c, ok := t.on.(*cached); ok {
		return c.run(ctx, text)
	}
	_, err := t.on.ExecContext(ctx, text)
	return err
}

// guarded turns a panic of fn into an error, so that one bad function cannot take the writer down.
func guarded(t *transaction, fn func(*transaction) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("transaction function panicked: %v\n%s", r, debug.Stack())
		}
	}()
	return fn(t)
}

func (t *transaction) committed() {
	for _, f := range t.after {
		f()
	}
}

// A brokenError says that the transaction itself is lost, not only the function that ran in it.
type brokenError struct{ error }

func (e brokenError) Unwrap() error { return e.error }
