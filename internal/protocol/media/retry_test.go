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
	// patience limits how long tests wait for an event. It is far longer than any event takes; only a defect uses it
	// up.
	patience = 30 * time.Second
	// trials is how often a test is repeated if the machine stalls each time.
	trials = 5
	// stallThreshold is the scheduling delay from which audio counts as disturbed.
	stallThreshold = 30 * time.Millisecond
)

// undisturbed runs a real-time audio test, and repeats it if it fails while the machine stalled, because the audio
// was then not sent as planned. A failure without a stall, or in the last trial, fails the test.
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
		case late < stallThreshold || n == trials-1:
			for _, line := range a.messages {
				t.Error(line)
			}
			t.Fatalf("failed in trial %d of %d, in which the machine stood still for %v at most", n+1, trials, late)
		}
		t.Logf("made again, for the machine stood still for %v: %q", late, a.messages)
	}
}

// probe starts to measure how late goroutines run. halted ends the measurement and returns the longest delay.
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

// A trial records failures instead of failing the test that it belongs to.
type trial struct {
	testing.TB
	ctx context.Context

	mu       sync.Mutex
	failed   bool
	messages []string
	cleanups []func()
}

func (a *trial) run(experiment func(t testing.TB)) {
	ctx, cancel := context.WithCancel(a.TB.Context())
	a.ctx = ctx
	over := make(chan struct{})
	go func() { // Fatal ends the goroutine it is called in
		defer close(over)
		defer a.runCleanups()
		defer cancel()
		experiment(a)
	}()
	<-over
}

// runCleanups runs the functions passed to Cleanup, the last first.
func (a *trial) runCleanups() {
	for {
		a.mu.Lock()
		n := len(a.cleanups)
		if n == 0 {
			a.mu.Unlock()
			return
		}
		f := a.cleanups[n-1]
		a.cleanups = a.cleanups[:n-1]
		a.mu.Unlock()
		f()
	}
}

func (a *trial) Cleanup(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cleanups = append(a.cleanups, f)
}

func (a *trial) Context() context.Context { return a.ctx }

func (a *trial) note(line string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed, a.messages = true, append(a.messages, line)
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
