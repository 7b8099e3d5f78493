package db

import (
	"context"
	"database/sql"
	"fmt"
	"runtime/debug"
	"strconv"
)

// statements is the part of database/sql that a transaction needs.
type statements interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// transaction is used by one goroutine at a time.
type transaction struct {
	on      statements
	after   []func() // called after commit
	batched []batchedItem
	depth   int
}

// Exec ignores cancellation: an interrupted statement would make SQLite roll back the whole group commit.
func (t *transaction) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return t.on.ExecContext(context.WithoutCancel(ctx), query, args...)
}

func (t *transaction) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return t.on.QueryContext(context.WithoutCancel(ctx), query, args...)
}

func (t *transaction) QueryRow(ctx context.Context, query string, args ...any) *sql.Row {
	return t.on.QueryRowContext(context.WithoutCancel(ctx), query, args...)
}

// nested runs fn in a savepoint: if fn fails, its changes are undone and the transaction continues.
func (t *transaction) nested(ctx context.Context, fn func(*transaction) error) error {
	t.depth++
	defer func() { t.depth-- }()
	name := "s" + strconv.Itoa(t.depth)
	if err := t.run(ctx, "SAVEPOINT "+name); err != nil {
		return brokenError{err}
	}
	kept, given := len(t.after), len(t.batched)
	if err := guarded(t, fn); err != nil {
		t.after, t.batched = t.after[:kept], t.batched[:given]
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

// first is nested for the first function in a transaction of SQLite. It needs no savepoint, because there is nothing
// before it to preserve. A savepoint copies every page that is changed after it.
func (t *transaction) first(ctx context.Context, fn func(*transaction) error) error {
	err := guarded(t, fn)
	if err == nil {
		return nil
	}
	t.after, t.batched = nil, nil
	_ = t.run(ctx, "ROLLBACK") // fails if the error has already ended the transaction
	if undo := t.run(ctx, "BEGIN IMMEDIATE"); undo != nil {
		return brokenError{fmt.Errorf("%w (and beginning anew: %v)", err, undo)}
	}
	return err
}

// run executes a statement that begins or ends a transaction or savepoint.
func (t *transaction) run(ctx context.Context, text string) error {
	ctx = context.WithoutCancel(ctx)
	if c, ok := t.on.(*cached); ok {
		return c.run(ctx, text)
	}
	_, err := t.on.ExecContext(ctx, text)
	return err
}

// guarded converts a panic of fn to an error, so that it cannot stop the writer.
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

// brokenError means that the whole transaction is lost, not only one function.
type brokenError struct{ error }

func (e brokenError) Unwrap() error { return e.error }
