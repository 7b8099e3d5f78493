package crash_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// disk measures stalls of the disk by a process of its own that writes all the time beside the server. A stall of the
// measuring process is a stall of the server too: no program can write while its disk stalls, or run while its
// processor is busy.
type disk struct {
	mu     sync.Mutex // guards stalls
	stalls []stall
}

// stall is a period without a write.
type stall struct{ from, to time.Time }

const writeEvery = 50 * time.Millisecond

func watchDisk(t *testing.T, folder string) *disk {
	t.Helper()
	f, err := os.Create(filepath.Join(folder, "probe"))
	if err != nil {
		t.Fatal(err)
	}
	d := &disk{}
	quit := make(chan struct{})
	var running sync.WaitGroup
	t.Cleanup(func() {
		close(quit)
		running.Wait()
		_ = f.Close()
	})
	running.Go(func() { d.write(f, quit) })
	return d
}

func (d *disk) write(f *os.File, quit chan struct{}) {
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	block := make([]byte, 4096)
	last := time.Now()
	for {
		select {
		case <-quit:
			return
		case <-tick.C:
		}
		if _, err := f.Write(block); err != nil {
			return
		}
		now := time.Now()
		if now.Sub(last) > 3*writeEvery {
			d.mu.Lock()
			d.stalls = append(d.stalls, stall{last, now})
			d.mu.Unlock()
		}
		last = now
	}
}

// stood returns the total of the stalls within the four seconds before a time.
func (d *disk) stood(before time.Time) (total time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.stalls {
		from, to := s.from, s.to
		if begin := before.Add(-2 * lostAtMost); from.Before(begin) {
			from = begin
		}
		if to.After(before) {
			to = before
		}
		total += max(0, to.Sub(from))
	}
	return total
}
