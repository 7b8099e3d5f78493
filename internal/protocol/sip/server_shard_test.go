package sip

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// newStartedShard returns a shard with its goroutine, which is still parked.
func newStartedShard(t *testing.T) *shard {
	t.Helper()
	l := newTestShard(t)
	l.srv.config.Now = time.Now
	l.srv.startedAt = time.Now()
	s := l.shard
	var ended sync.WaitGroup
	ended.Go(s.run)
	t.Cleanup(func() {
		s.close()
		ended.Wait()
	})
	return s
}

func TestShard_TaskRunsAtOnceIfUnlocked(t *testing.T) {
	t.Parallel()
	s := newTestShard(t).shard // without a goroutine
	var done []string
	s.runOrEnqueue(func(*shard) {
		done = append(done, "first")
		s.runOrEnqueue(func(*shard) { done = append(done, "inside") })
		if len(done) > 1 {
			t.Error("a task is done inside another")
		}
	})
	if !slices.Equal(done, []string{"first"}) {
		t.Fatalf("done on return: %v", done)
	}
	select {
	case <-s.wake: // the goroutine handles later tasks
	default:
		t.Error("the goroutine is not told of what is left")
	}
	s.runOrEnqueue(func(*shard) { done = append(done, "last") })
	if !slices.Equal(done, []string{"first", "inside", "last"}) {
		t.Errorf("order: %v", done)
	}
}

func TestShard_OneGoroutineAtATime(t *testing.T) {
	t.Parallel()
	s := newStartedShard(t)
	const workers, tasks = 8, 2000
	var all sync.WaitGroup
	all.Add(workers * tasks)
	done := 0 // the race detector notices concurrent access
	for w := range workers {
		go func() {
			for i := range tasks {
				do := func(*shard) { done++; all.Done() }
				if (i+w)%3 == 0 {
					s.enqueue(do)
				} else {
					s.runOrEnqueue(do)
				}
			}
		}()
	}
	all.Wait()
	left := make(chan int)
	s.enqueue(func(*shard) { left <- done })
	if n := <-left; n != workers*tasks {
		t.Errorf("%d of %d tasks done", n, workers*tasks)
	}
}

// testTimer reports the time at which it fired.
type testTimer struct {
	timer
	fired chan time.Duration
}

func (b *testTimer) expire(s *shard) { b.fired <- s.now }

func TestShard_TimerSetByOtherGoroutineFires(t *testing.T) {
	t.Parallel()
	s := newStartedShard(t)
	far := &testTimer{}
	far.owner = far
	s.runOrEnqueue(func(s *shard) { s.timers.set(&far.timer, s.now+time.Minute) })
	for _, after := range []time.Duration{50 * time.Millisecond, 20 * time.Millisecond, 5 * time.Millisecond, 0} {
		b := &testTimer{fired: make(chan time.Duration, 1)}
		b.owner = b
		var due time.Duration
		s.runOrEnqueue(func(s *shard) {
			due = s.now + after
			s.timers.set(&b.timer, due)
		})
		select {
		case at := <-b.fired:
			if at < due {
				t.Errorf("rang %v early", due-at)
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("a timer of %v never rang", after)
		}
	}
}

func TestShard_ClosedRefusesTasks(t *testing.T) {
	t.Parallel()
	s := newStartedShard(t)
	s.close()
	if s.runOrEnqueue(func(*shard) { t.Error("done after the end") }) || s.enqueue(func(*shard) {}) {
		t.Error("a closed shard takes tasks")
	}
}
