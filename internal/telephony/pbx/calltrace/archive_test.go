package calltrace

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"
)

// archivedCall stands for a call. It is too large for the allocator of tiny objects, so that a weak pointer to it ends with it.
type archivedCall struct{ _ [64]byte }

// archiveStore counts the batches that an archive writes.
type archiveStore struct {
	until   time.Time // writes fail before this time
	batches []int
	dropped int
}

func (s *archiveStore) archive() *Archive[*archivedCall] {
	return &Archive[*archivedCall]{log: slog.New(slog.DiscardHandler), drop: func(*archivedCall) { s.dropped++ },
		write: func(_ context.Context, all []*archivedCall) error {
			if time.Now().Before(s.until) {
				return errors.New("disk is full")
			}
			s.batches = append(s.batches, len(all))
			return nil
		}}
}

func TestTimelineArchive_WritesManyInOneTransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &archiveStore{}
		a := s.archive()
		var all sync.WaitGroup
		for range maxArchived + 10 {
			all.Go(func() { a.Add(t.Context(), &archivedCall{}) })
		}
		all.Wait()
		if len(s.batches) != 2 || s.batches[0] != maxArchived || s.batches[1] != 10 {
			t.Errorf("written in batches of %v, want %d and 10", s.batches, maxArchived)
		}
		a.Add(t.Context(), &archivedCall{})
		if len(s.batches) != 3 {
			t.Error("nobody writes the timeline that came later")
		}
	})
}

func TestTimelineArchive_RetriesAndDropsOldest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &archiveStore{until: time.Now().Add(time.Minute)}
		a := s.archive()
		var all sync.WaitGroup
		for range maxArchiveQueue + 5 {
			all.Go(func() { a.Add(t.Context(), &archivedCall{}) })
		}
		all.Wait()
		written := 0
		for _, n := range s.batches {
			written += n
		}
		if written != maxArchiveQueue || s.dropped != 5 {
			t.Errorf("%d written and %d dropped, want %d and 5", written, s.dropped, maxArchiveQueue)
		}
	})
}

// Waiting calls hold memory, so full batches are written without a pause.
func TestTimelineArchive_FullBatchesWithoutDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &archiveStore{}
		a := s.archive()
		start := time.Now()
		var all sync.WaitGroup
		for range 10 * maxArchived {
			all.Go(func() { a.Add(t.Context(), &archivedCall{}) })
		}
		all.Wait()
		if took := time.Since(start); len(s.batches) != 10 || took > 3*archivePace {
			t.Errorf("%d batches within %s, want ten within three breaths", len(s.batches), took)
		}
	})
}

func TestTimelineArchive_ReleasesWrittenCalls(t *testing.T) {
	t.Parallel()
	a := (&archiveStore{}).archive()
	calls := make([]weak.Pointer[archivedCall], maxArchived/2)
	for i := range calls {
		c := &archivedCall{}
		calls[i] = weak.Make(c)
		a.waiting = append(a.waiting, c)
	}
	if err := a.flush(); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	for i, c := range calls {
		if c.Value() != nil {
			t.Fatalf("call %d is still held", i)
		}
	}
	runtime.KeepAlive(a)
}
