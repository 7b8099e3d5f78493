// Package writequeue writes the changes of a call in order, and tries failed writes again.
package writequeue

import (
	"context"
	"log/slog"
	"time"
)

// Queue writes the changes of one call in order. A failed write, for example if the disk is full or the database
// not available, stays in the queue. It is tried again before the next write, and after the end of the call until it
// succeeds.
type Queue struct {
	log     *slog.Logger
	callID  *string // call ID for the log
	pending []pendingWrite
	started []pendingWrite // in progress, not confirmed yet

	background *background // performs the writes; nil: Write waits for them
}

// New returns an empty queue for a call.
func New(log *slog.Logger, callID *string) Queue {
	return Queue{log: log, callID: callID}
}

// pendingWrite is one write. It has to be idempotent: a failed write may have been committed, with only its answer
// lost.
type pendingWrite struct {
	what   string
	write  func(ctx context.Context) error
	wait   func() error // waits for a write in progress
	logged bool         // the first failure was logged
}

// Delays between tries, and the time limit of a try.
const (
	firstRetry   = 200 * time.Millisecond
	LastRetry    = 15 * time.Second
	WriteTimeout = 10 * time.Second
)

// Write performs a write after all earlier ones, or queues it.
func (l *Queue) Write(ctx context.Context, what string, write func(ctx context.Context) error) {
	f := pendingWrite{what: what, write: write}
	if l.background != nil {
		l.background.add(f)
		return
	}
	if len(l.pending) == 0 && len(l.started) > 0 { // shares the commit of the writes in progress
		if err := l.try(ctx, &f); err != nil {
			defer func() { l.pending = append(l.pending, f) }()
		}
		l.FinishStarted(ctx)
		return
	}
	l.pending = append(l.pending, f)
	l.flush(ctx)
}

// StartWrite starts a write after all earlier ones and does not wait. The next write checks its result.
func (l *Queue) StartWrite(ctx context.Context, what string, start func(ctx context.Context) (wait func() error)) {
	f := pendingWrite{what: what, write: func(ctx context.Context) error { return start(ctx)() }}
	if l.background != nil {
		l.background.add(f)
		return
	}
	if len(l.pending) > 0 {
		l.pending = append(l.pending, f)
		l.flush(ctx)
		return
	}
	limited, cancel := context.WithTimeout(ctx, WriteTimeout)
	wait := start(limited)
	f.wait = func() error { defer cancel(); return wait() }
	l.started = append(l.started, f)
}

// FinishStarted waits for the writes in progress. Failed ones are tried again.
func (l *Queue) FinishStarted(ctx context.Context) {
	if l.background != nil {
		return
	}
	for _, f := range l.started {
		if err := f.wait(); err != nil {
			l.logFailure(&f, err)
			l.pending = append(l.pending, f)
		}
	}
	l.started = nil
	l.flush(ctx)
}

func (l *Queue) try(ctx context.Context, f *pendingWrite) error {
	limited, cancel := context.WithTimeout(ctx, WriteTimeout)
	defer cancel()
	err := f.write(limited)
	if err != nil {
		l.logFailure(f, err)
	}
	return err
}

// flush performs the queued writes and reports whether all succeeded.
func (l *Queue) flush(ctx context.Context) bool {
	for len(l.pending) > 0 {
		f := &l.pending[0]
		if l.try(ctx, f) != nil {
			return false
		}
		if f.logged {
			l.log.Info(f.what+" written after all", "call", *l.callID)
		}
		*f = pendingWrite{} // releases the memory of the finished write
		l.pending = l.pending[1:]
	}
	l.pending = nil
	return true
}

func (l *Queue) logFailure(f *pendingWrite, err error) {
	if !f.logged {
		f.logged = true
		l.log.Error(f.what+" not written yet, it is tried again", "call", *l.callID, "err", err)
	}
}

// Drain returns when all writes have succeeded, or when ctx ends.
func (l *Queue) Drain(ctx context.Context) {
	if l.background != nil {
		l.background.drain(ctx)
		return
	}
	l.FinishStarted(ctx)
	wait := firstRetry
	for !l.flush(ctx) {
		select {
		case <-ctx.Done():
			l.logAbandoned()
			return
		case <-time.After(wait):
			wait = min(2*wait, LastRetry)
		}
	}
}

func (l *Queue) logAbandoned() {
	l.log.Error(l.pending[0].what+" not written", "call", *l.callID, "facts", len(l.pending))
}
