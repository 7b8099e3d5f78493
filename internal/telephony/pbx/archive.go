package pbx

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"soniq/internal/telephony/call"
)

// lastAnswers is how long the answers to our BYEs and CANCELs are waited for: a message that was lost is sent again after half
// a second, and again a second later.
const lastAnswers = 3 * time.Second

// lastMessages sees to it that what is said when a call is over, such as our BYE and its answer, is in its story.
func (s *Switch) lastMessages(c *liveCall) {
	if !c.told {
		s.forget(c)
		return
	}
	limit := time.NewTimer(lastAnswers)
	defer limit.Stop()
	for _, l := range c.legs {
		if l.sip == nil || l.owner.Load() != c {
			continue
		}
		select {
		case <-l.sip.Gone():
			continue
		case <-limit.C:
		case <-s.writing.Done():
		}
		break
	}
	s.archive.add(s.writing, c)
}

// forget lets go of a call that is over.
func (s *Switch) forget(c *liveCall) {
	for _, l := range c.legs {
		if l.owner.Load() == c {
			s.forgetCallID(l)
		}
	}
	s.mu.Lock()
	delete(s.ending, c.id)
	s.mu.Unlock()
}

// writeStories writes down the stories of these calls, and lets go of the calls.
func (s *Switch) writeStories(ctx context.Context, all []*liveCall) error {
	stories := make([]call.Told, len(all))
	for i, c := range all {
		stories[i] = call.Told{Org: c.new.Org, CallID: c.id, Story: c.story.copy()}
	}
	if err := s.Records.KeepStories(ctx, stories); err != nil {
		return err
	}
	for _, c := range all {
		s.forget(c)
	}
	return nil
}

// An archive writes down the stories of calls that are over: those of many in one transaction, and a moment later, so that the last
// acknowledgements are in them. There is no goroutine of it: whoever adds to an archive that does nothing does its work.
type archive struct {
	log   *slog.Logger
	write func(ctx context.Context, all []*liveCall) error
	drop  func(*liveCall)

	mu      sync.Mutex // guards the fields below
	waiting []*liveCall
	busy    bool
}

// The most stories in one transaction, those that wait while the database is away, and the moment before they are written.
const (
	maxArchived = 64
	maxWaiting  = 1000
	archivePace = 250 * time.Millisecond
)

// add has a call's story written. It returns at once where somebody writes already, else when all is written or ctx
// has ended; even then it tries once.
func (a *archive) add(ctx context.Context, c *liveCall) {
	a.mu.Lock()
	a.waiting = append(a.waiting, c)
	work := !a.busy
	a.busy = true
	a.mu.Unlock()
	for pause := archivePace; work; {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = a.pace()
		if err := a.flush(); err != nil {
			pause = lastRetry
			a.log.Warn("stories are not written yet", "err", err)
		}
		work = a.more(ctx)
	}
}

// pace is how long to wait before the next batch: not at all where it is full already, for those who wait hold memory.
func (a *archive) pace() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) >= 2*maxArchived { // one of them is written now
		return 0
	}
	return archivePace
}

// flush writes a batch; one that cannot be written now waits again.
func (a *archive) flush() error {
	a.mu.Lock()
	n := min(len(a.waiting), maxArchived)
	batch := slices.Clone(a.waiting[:n])
	clear(a.waiting[:n]) // or the array would hold on to calls that are written
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

// more reports whether there is more to write; if not, whoever adds next writes.
func (a *archive) more(ctx context.Context) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.waiting) > maxWaiting { // they are worth less than memory
		a.drop(a.waiting[0])
		a.waiting[0] = nil
		a.waiting = a.waiting[1:]
	}
	a.busy = len(a.waiting) > 0 && ctx.Err() == nil
	return a.busy
}
