package server

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// closers is a stack of stop functions. Each start step pushes its own, so that what started last stops first. The zero value is empty and ready.
type closers struct {
	mu  sync.Mutex // guards all
	all []closer
}

type closer struct {
	name string
	stop func(ctx context.Context)
}

// push adds a stop function. The name appears in the log.
func (c *closers) push(name string, stop func(ctx context.Context)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, closer{name, stop})
}

// close calls all stop functions, last in first out, and empties the stack. They share the deadline of the context.
func (c *closers) close(ctx context.Context, log *slog.Logger) {
	c.mu.Lock()
	all := c.all
	c.all = nil
	c.mu.Unlock()
	for i := len(all) - 1; i >= 0; i-- {
		began := time.Now()
		all[i].stop(ctx)
		log.Debug("stopped", "part", all[i].name, "took", time.Since(began))
	}
}
