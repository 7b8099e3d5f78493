package calltrace

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"soniq/internal/telephony/pbx/writequeue"
)

// Archive writes the timelines of ended calls, many in one transaction. It waits a moment first, so that the
// last acknowledgements are included. It has no goroutine of its own: the goroutine that adds to an idle archive does
// the writing.
type Archive[C any] struct {
	log   *slog.Logger
	write func(ctx context.Context, all []C) error
	drop  func(C)

	mu      sync.Mutex // guards the fields below
	waiting []C
	writing bool
}

// Limits: timelines per transaction, timelines that wait while the database is not available, and the delay before
// they are written.
const (
	maxArchived     = 64
	maxArchiveQueue = 1000
	archivePace     = 250 * time.Millisecond
)

// NewArchive returns an archive. write stores timelines in one transaction, drop removes a call without.
func NewArchive[C any](log *slog.Logger, write func(ctx context.Context, all []C) error, drop func(C)) Archive[C] {
	return Archive[C]{log: log, write: write, drop: drop}
}

// Add queues the timeline of a call. It returns at once if another goroutine already writes. Otherwise it writes
// until the queue is empty or ctx ends, and tries at least once.
func (a *Archive[C]) Add(ctx context.Context, c C) {
	a.mu.Lock()
	a.waiting = append(a.waiting, c)
	work := !a.writing
	a.writing = true
	a.mu.Unlock()
	for pause := archivePace; work; {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = a.pace()
		if err := a.flush(); err != nil {
			pause = writequeue.LastRetry
			a.log.Warn("timelines not written; the write is tried again", "err", err)
		}
		work = a.more(ctx)
	}
}

// pace returns the delay before the next batch. It is zero if a full batch already waits, because waiting calls hold
// memory.
func (a *Archive[C]) pace() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) >= 2*maxArchived { // one batch of them is written now
		return 0
	}
	return archivePace
}

// flush writes one batch. A batch that fails returns to the queue.
func (a *Archive[C]) flush() error {
	a.mu.Lock()
	n := min(len(a.waiting), maxArchived)
	batch := slices.Clone(a.waiting[:n])
	clear(a.waiting[:n]) // otherwise the array would keep the written calls in memory
	a.waiting = a.waiting[n:]
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), writequeue.WriteTimeout)
	defer cancel()
	err := a.write(ctx, batch)
	if err != nil {
		a.mu.Lock()
		a.waiting = append(batch, a.waiting...)
		a.mu.Unlock()
	}
	return err
}

// more reports whether the queue still has entries. If not, the next goroutine that adds an entry writes.
func (a *Archive[C]) more(ctx context.Context) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.waiting) > maxArchiveQueue { // memory matters more than these timelines
		a.drop(a.waiting[0])
		clear(a.waiting[:1])
		a.waiting = a.waiting[1:]
	}
	a.writing = len(a.waiting) > 0 && ctx.Err() == nil
	return a.writing
}
