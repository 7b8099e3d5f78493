package pbx

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"soniq/internal/telephony/call"
)

// finalAnswerWait limits the wait for the answers to our BYEs and CANCELs. A lost message is sent again after half a
// second, and again one second later.
const finalAnswerWait = 3 * time.Second

// awaitFinalMessages waits for the last messages of an ended call, such as our BYE and its answer, so that the
// timeline includes them.
func (s *Switch) awaitFinalMessages(c *liveCall) {
	if !c.keepTimeline {
		s.forgetCall(c)
		return
	}
	limit := time.NewTimer(finalAnswerWait)
	defer limit.Stop()
	for _, l := range c.legs {
		if l.sip == nil || l.owner.Load() != c {
			continue
		}
		select {
		case <-l.sip.Done():
			continue
		case <-limit.C:
		case <-s.writing.Done():
		}
		break
	}
	s.archive.add(s.writing, c)
}

// forgetCall removes an ended call from the indexes.
func (s *Switch) forgetCall(c *liveCall) {
	for _, l := range c.legs {
		if l.owner.Load() == c {
			s.unindexCallID(l)
		}
	}
	s.mu.Lock()
	delete(s.ending, c.id)
	s.mu.Unlock()
}

// writeTimelines writes the timelines of these calls, then removes the calls.
func (s *Switch) writeTimelines(ctx context.Context, all []*liveCall) error {
	stories := make([]call.CallTimeline, len(all))
	for i, c := range all {
		stories[i] = call.CallTimeline{Org: c.new.Org, CallID: c.id, Timeline: c.timeline.copy()}
	}
	if err := s.Records.WriteTimelines(ctx, stories); err != nil {
		return err
	}
	for _, c := range all {
		s.forgetCall(c)
	}
	return nil
}

// timelineArchive writes the timelines of ended calls, many in one transaction. It waits a moment first, so that the
// last acknowledgements are included. It has no goroutine of its own: the goroutine that adds to an idle archive does
// the writing.
type timelineArchive struct {
	log   *slog.Logger
	write func(ctx context.Context, all []*liveCall) error
	drop  func(*liveCall)

	mu      sync.Mutex // guards the fields below
	waiting []*liveCall
	writing bool
}

// Limits: timelines per transaction, timelines that wait while the database is not available, and the delay before
// they are written.
const (
	maxArchived     = 64
	maxArchiveQueue = 1000
	archivePace     = 250 * time.Millisecond
)

// add queues the timeline of a call. It returns at once if another goroutine already writes. Otherwise it writes
// until the queue is empty or ctx ends, and tries at least once.
func (a *timelineArchive) add(ctx context.Context, c *liveCall) {
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
			pause = lastRetry
			a.log.Warn("timelines not written; the write is tried again", "err", err)
		}
		work = a.more(ctx)
	}
}

// pace returns the delay before the next batch. It is zero if a full batch already waits, because waiting calls hold
// memory.
func (a *timelineArchive) pace() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) >= 2*maxArchived { // one batch of them is written now
		return 0
	}
	return archivePace
}

// flush writes one batch. A batch that fails returns to the queue.
func (a *timelineArchive) flush() error {
	a.mu.Lock()
	n := min(len(a.waiting), maxArchived)
	batch := slices.Clone(a.waiting[:n])
	clear(a.waiting[:n]) // otherwise the array would keep the written calls in memory
	a.waiting = a.waiting[n:]
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
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
func (a *timelineArchive) more(ctx context.Context) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.waiting) > maxArchiveQueue { // memory matters more than these timelines
		a.drop(a.waiting[0])
		a.waiting[0] = nil
		a.waiting = a.waiting[1:]
	}
	a.writing = len(a.waiting) > 0 && ctx.Err() == nil
	return a.writing
}
