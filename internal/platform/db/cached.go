package db

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// maxCached is the limit of prepared statements. Our statements are constants, so it is never reached in practice.
const maxCached = 2000

// cached is a cache of prepared statements, by their text.
type cached struct {
	on      statements
	prepare func(ctx context.Context, query string) (*sql.Stmt, error)
	closer  func() error
	written *written // set on the writing connection of SQLite, otherwise nil

	mu    sync.RWMutex // guards known
	known map[string]*prepared
}

// prepared is a prepared statement. Its n-th parameter is the order[n]-th argument. A nil order means the order of
// the arguments.
type prepared struct {
	*sql.Stmt
	order    []int
	counters []*atomic.Uint64 // counters of the tables it writes to
}

// arrange returns the arguments in the order of the parameters.
func (p *prepared) arrange(args []any) []any {
	if p.order == nil {
		return args
	}
	all := make([]any, len(p.order))
	for i, from := range p.order {
		if from >= len(args) {
			return args // the driver returns the error
		}
		all[i] = args[from]
	}
	return all
}

func newCached(on statements, prepare func(context.Context, string) (*sql.Stmt, error), closer func() error) *cached {
	return &cached{on: on, prepare: prepare, closer: closer, known: map[string]*prepared{}}
}

// statement returns the prepared statement. It returns nil if the text has to be run unprepared.
func (c *cached) statement(ctx context.Context, query string) *prepared {
	c.mu.RLock()
	s, full := c.known[query], len(c.known) >= maxCached
	c.mu.RUnlock()
	if s != nil || full {
		return s
	}
	text, order := positional(query)
	made, err := c.prepare(context.WithoutCancel(ctx), text)
	if err != nil {
		return nil // running the text returns the error to the caller
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.known[query]; other != nil {
		_ = made.Close()
		return other
	}
	s = &prepared{made, order, c.countersOf(query)}
	c.known[query] = s
	return s
}

// positional replaces $1, $2 … by ?, and returns the argument index of each, from 0. The order is nil if all are in
// sequence, each once. The driver looks up numbered parameters by comparing texts, in quadratic time. A text with any
// other $ is returned unchanged.
func positional(query string) (text string, order []int) {
	var out strings.Builder
	quoted, inOrder := false, true
	for i := 0; i < len(query); i++ {
		c := query[i]
		if c == '\'' {
			quoted = !quoted
		}
		if quoted || c != '$' {
			out.WriteByte(c)
			continue
		}
		digits := i + 1
		for digits < len(query) && query[digits] >= '0' && query[digits] <= '9' {
			digits++
		}
		n, err := strconv.Atoi(query[i+1 : digits])
		if err != nil || n < 1 {
			return query, nil
		}
		inOrder = inOrder && n == len(order)+1
		order = append(order, n-1)
		out.WriteByte('?')
		i = digits - 1
	}
	if inOrder {
		order = nil
	}
	return out.String(), order
}

func (c *cached) countersOf(query string) []*atomic.Uint64 {
	if c.written == nil {
		return nil
	}
	return c.written.counters.of(writesTo(query))
}

// noteWrite records the tables that a statement writes to. s is nil if the statement is not prepared.
func (c *cached) noteWrite(s *prepared, query string) {
	switch {
	case c.written == nil:
	case s == nil:
		c.written.add(c.countersOf(query))
	default:
		c.written.add(s.counters)
	}
}

func (c *cached) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if len(args) > 0 {
		if s := c.statement(ctx, query); s != nil {
			c.noteWrite(s, query)
			return s.ExecContext(ctx, s.arrange(args)...)
		}
	}
	c.noteWrite(nil, query)
	return c.on.ExecContext(ctx, query, args...)
}

// run executes a prepared statement that begins or ends a transaction.
func (c *cached) run(ctx context.Context, text string) error {
	s := c.statement(ctx, text)
	if s == nil {
		_, err := c.on.ExecContext(ctx, text)
		return err
	}
	_, err := s.ExecContext(ctx)
	return err
}

func (c *cached) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if s := c.statement(ctx, query); s != nil {
		c.noteWrite(s, query)
		return s.QueryContext(ctx, s.arrange(args)...)
	}
	c.noteWrite(nil, query)
	return c.on.QueryContext(ctx, query, args...)
}

func (c *cached) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if s := c.statement(ctx, query); s != nil {
		c.noteWrite(s, query)
		return s.QueryRowContext(ctx, s.arrange(args)...)
	}
	c.noteWrite(nil, query)
	return c.on.QueryRowContext(ctx, query, args...)
}

// Exec, Query and QueryRow implement Querier for the pool of readers.
func (c *cached) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return c.ExecContext(ctx, query, args...)
}

func (c *cached) Query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return c.QueryContext(ctx, query, args...)
}

func (c *cached) QueryRow(ctx context.Context, query string, args ...any) *sql.Row {
	return c.QueryRowContext(ctx, query, args...)
}

func (c *cached) close() error {
	c.mu.Lock()
	for _, s := range c.known {
		_ = s.Close()
	}
	c.known = map[string]*prepared{}
	c.mu.Unlock()
	return c.closer()
}
