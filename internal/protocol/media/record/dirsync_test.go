package record

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Callers that arrive while a directory is being synced share the next sync. No caller is served by a sync that began
// before its call.
func TestDirectorySync_Shared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		began := map[string]int{}
		s := newDirectorySync(func(path string) error {
			mu.Lock()
			began[path]++
			mu.Unlock()
			time.Sleep(10 * time.Millisecond)
			if path == "bad" {
				return errors.New("full")
			}
			return nil
		})
		start := time.Now()
		var all sync.WaitGroup
		ask := func(after time.Duration, path string, want time.Duration, fails bool) {
			all.Go(func() {
				time.Sleep(after)
				if err := s.flush(path); (err != nil) != fails {
					t.Errorf("%s: %v", path, err)
				}
				if took := time.Since(start); took != want {
					t.Errorf("asked after %v: done after %v, want %v", after, took, want)
				}
			})
		}
		ask(0, "a", 10*time.Millisecond, false)
		for range 20 {
			ask(time.Millisecond, "a", 20*time.Millisecond, false)
		}
		ask(11*time.Millisecond, "a", 30*time.Millisecond, false)
		ask(0, "bad", 10*time.Millisecond, true)
		ask(time.Millisecond, "bad", 20*time.Millisecond, true)
		ask(50*time.Millisecond, "a", 60*time.Millisecond, false)
		all.Wait()
		if began["a"] != 4 || began["bad"] != 2 || len(s.running)+len(s.next) != 0 {
			t.Errorf("began %v times; left %v %v", began, s.running, s.next)
		}
	})
}
