package db

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"sync"
)

// maxCached bounds the prepared statements kept; ours are constants, so it is never reached in practice.
const maxCached = 2000

// cached keeps prepared statements by their text.
type cached struct {
	on      statements
	prepare func(ctx context.Context, query string) (*sql.Stmt, error)
	closer  func() error

	mu    sync.RWMutex // guards known
	known map[string]*sql.Stmt
}

func newCached(on statements, prepare func(context.Context, string) (*sql.Stmt, error), closer func() error) *cached {
	return &cached{on: on, prepare: prepare, closer: closer, known: map[string]*sql.Stmt{}}
}

// statement returns the prepared statement, or nil where the text is better run as it is.
func (c *cached) statement(ctx context.Context, query string) *sql.Stmt {
	c.mu.RLock()
	s, full := c.known[query], len(c.known) >= maxCached
	c.mu.RUnlock()
	if s != nil || full {
		return s
	}
	s, err := c.prepare(context.WithoutCancel(ctx), positional(query))
	if err != nil {
		return nil // running the text gives the caller the error
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.known[query]; other != nil {
		_ = s.Close()
		return other
	}
	c.known[query] = s
	return s
}

// positional writes $1, $2 … as ? where they stand in order, each once; otherwise it returns the text as it is. The
// driver looks up each numbered parameter by comparing texts, in a time that grows with the square of their number.
func positional(query string) string {
	var out strings.Builder
	quoted, n := false, 0
	for i := 0; i < len(query); i++ {
		c := query[i]
		if c == '\'' {
			quoted = !quoted
		}
		if quoted || c != '$' {
			out.WriteByte(c)
			continue
		}
		n++
		place := strconv.Itoa(n)
		rest := query[i+1:]
		if !strings.HasPrefix(rest, place) || len(rest) > len(place) && rest[len(place)] >= '0' && rest[len(place)] <= '9' {
			return query
		}
		out.WriteByte('?')
		i += len(place)
	}
	return out.String()
}

func (c *cached) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if len(args) > 0 {
		if s := c.statement(ctx, query); s != nil {
			return s.ExecContext(ctx, args...)
		}
	}
	return c.on.ExecContext(ctx, query, args...)
}

func (c *cached) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if s := c.statement(ctx, query); s != nil {
		return s.QueryContext(ctx, args...)
	}
	return c.on.QueryContext(ctx, query, args...)
}

func (c *cached) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if s := c.statement(ctx, query); s != nil {
		return s.QueryRowContext(ctx, args...)
	}
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
	c.known = map[string]*sql.Stmt{}
	c.mu.Unlock()
	return c.closer()
}
