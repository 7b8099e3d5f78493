package media

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

const (
	// patience is how long tests wait for what must come. It is far more than that takes: only a defect uses it up.
	patience = 30 * time.Second
	// trials is how often an experiment is made that the machine disturbs each time.
	trials = 5
	// standstill is how late a goroutine must run before audio is thought to be disturbed.
	standstill = 30 * time.Millisecond
)

// undisturbed makes an experiment with audio in real time, and makes it again if it fails while the machine stood still, for then
// the audio was not what it was meant to be. A failure on a machine that runs, or each time, is one of the test.
func undisturbed(t *testing.T, experiment func(t testing.TB)) {
	t.Helper()
	for n := range trials {
		a := &trial{TB: t}
		halted := probe()
		a.run(experiment)
		late := halted()
		switch {
		case !a.failed:
			return
		case late < standstill || n == trials-1:
			for _, line := range a.said {
				t.Error(line)
			}
			t.Fatalf("failed in trial %d of %d, in which the machine stood still for %v at most", n+1, trials, late)
		}
		t.Logf("made again, for the machine stood still for %v: %q", late, a.said)
	}
}

// probe starts to watch how late goroutines run; halted ends that and tells the most.
func probe() (halted func() time.Duration) {
	const every = 5 * time.Millisecond
	done, most := make(chan struct{}), make(chan time.Duration)
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		var late time.Duration
		for last := time.Now(); ; {
			select {
			case <-tick.C:
				late, last = max(late, time.Since(last)-every), time.Now()
			case <-done:
				most <- max(late, time.Since(last)-every)
				return
			}
		}
	}()
	return func() time.Duration { close(done); return <-most }
}

// A trial is a test whose failure is not yet one of the test it is part of.
type trial struct {
	testing.TB
	ctx context.Context

	mu     sync.Mutex
	failed bool
	said   []string
	ends   []func()
}

func (a *trial) run(experiment func(t testing.TB)) {
	ctx, cancel := context.WithCancel(a.TB.Context())
	a.ctx = ctx
	over := make(chan struct{})
	go func() { // Fatal ends the goroutine it is called in
		defer close(over)
		defer a.end()
		defer cancel()
		experiment(a)
	}()
	<-over
}

// end does what Cleanup asked for, the last first.
func (a *trial) end() {
	for {
		a.mu.Lock()
		n := len(a.ends)
		if n == 0 {
			a.mu.Unlock()
			return
		}
		f := a.ends[n-1]
		a.ends = a.ends[:n-1]
		a.mu.Unlock()
		f()
	}
}

func (a *trial) Cleanup(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ends = append(a.ends, f)
}

func (a *trial) Context() context.Context { return a.ctx }

func (a *trial) note(line string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed, a.said = true, append(a.said, line)
}

func (a *trial) Error(args ...any)                 { a.note(fmt.Sprint(args...)) }
func (a *trial) Errorf(format string, args ...any) { a.note(fmt.Sprintf(format, args...)) }

func (a *trial) Fatal(args ...any) {
	a.Error(args...)
	runtime.Goexit()
}

func (a *trial) Fatalf(format string, args ...any) {
	a.Errorf(format, args...)
	runtime.Goexit()
}
