package server

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Stop refuses new calls, waits up to --drain for calls in progress, and closes all listeners, jobs and services. Further calls do nothing.
func (s *Server) Stop() {
	s.once.Do(func() {
		s.draining.Store(true)
		if s.sip != nil {
			s.sip.Drain()
		}
		ctx, cancel := context.WithTimeout(context.Background(), s.Platform.config.DrainTime)
		defer cancel()
		if s.switcher != nil {
			s.switcher.Drain(ctx)
		}
		s.settle()
		ctx, cancel = context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		s.closers.close(ctx, s.Platform.log)
		s.cancel()
		s.background.Wait()
		s.Platform.Close()
	})
}

// settleTime limits the wait for the answers to the last BYEs and CANCELs. It covers a few retransmissions.
const settleTime = 4 * time.Second

// settle waits until the last BYEs and CANCELs are answered, at most settleTime.
func (s *Server) settle() {
	if s.sip == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	s.sip.WaitForDialogs(ctx)
}

// shutdownTime limits the wait for HTTP requests and jobs in progress.
const shutdownTime = 10 * time.Second

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
