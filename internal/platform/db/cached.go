package db

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// maxCached bounds the prepared statements kept; ours are constants, so it is never reached in practice.
const maxCached = 2000

// cached keeps prepared statements by their text.
type cached struct {
	on      statements
	prepare func(ctx context.Context, query string) (*sql.Stmt, error)
	closer  func() error
	written *written // of the writer of SQLite; else nil

	mu    sync.RWMutex // guards known
	known map[string]*prepared
}

// prepared is a statement whose n-th parameter is the order[n]-th argument; a nil order is that of the arguments.
type prepared struct {
	*sql.Stmt
	order []int
	marks []*atomic.Uint64 // of the tables it writes to
}

// arrange puts the arguments into the order of the parameters.
func (p *prepared) arrange(args []any) []any {
	if p.order == nil {
		return args
	}
	all := make([]any, len(p.order))
	for i, from := range p.order {
		if from >= len(args) {
			return args // the driver says what is missing
		}
		all[i] = args[from]
	}
	return all
}

func newCached(on statements, prepare func(context.Context, string) (*sql.Stmt, error), closer func() error) *cached {
	return &cached{on: on, prepare: prepare, closer: closer, known: map[string]*prepared{}}
}

// statement returns the prepared statement, or nil where the text is better run as it is.
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
		return nil // running the text gives the caller the error
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.known[query]; other != nil {
		_ = made.Close()
		return other
	}
	s = &prepared{made, order, c.marksOf(query)}
	c.known[query] = s
	return s
}

// positional writes $1, $2 … as ? and says which argument each of them is, from 0; nil where they stand in order, each once.
// The driver looks up each numbered parameter by comparing texts, in a time that grows with the square of their number. A text
// with any other $ is returned as it is.
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

func (c *cached) marksOf(query string) []*atomic.Uint64 {
	if c.written == nil {
		return nil
	}
	return c.written.marks.of(writesTo(query))
}

// wrote remembers to what a statement writes; a nil s is one that is not prepared.
func (c *cached) wrote(s *prepared, query string) {
	switch {
	case c.written == nil:
	case s == nil:
		c.written.add(c.marksOf(query))
	default:
		c.written.add(s.marks)
	}
}

func (c *cached) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if len(args) > 0 {
		if s := c.statement(ctx, query); s != nil {
			c.wrote(s, query)
			return s.ExecContext(ctx, s.arrange(args)...)
		}
	}
	c.wrote(nil, query)
	return c.on.ExecContext(ctx, query, args...)
}

// run runs one of the few texts that begin and end transactions, prepared.
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
		c.wrote(s, query)
		return s.QueryContext(ctx, s.arrange(args)...)
	}
	c.wrote(nil, query)
	return c.on.QueryContext(ctx, query, args...)
}

func (c *cached) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if s := c.statement(ctx, query); s != nil {
		c.wrote(s, query)
		return s.QueryRowContext(ctx, s.arrange(args)...)
	}
	c.wrote(nil, query)
	return c.on.QueryRowContext(ctx, query, args...)
}

// Exec, Query and QueryRow make a pool of readers a Querier.
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
