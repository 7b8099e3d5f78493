package rig

import (
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/limit"
)

// A test is admitted when enough processor slots are free for its load, so that the audio of other tests is never
// late. Tests of all packages share the slots of the machine: each slot is a file that a process locks. When a
// process ends, the kernel frees its slots.
const slotsPerProcessor = 8

// Load counts the processor slots that a test needs while it runs. A processor has slotsPerProcessor of them.
type Load int

const (
	Waits   Load = 1 // a server with hardly anything to do
	Calls   Load = 2 // phones, and a server without speech recognition
	Speech  Load = 3 // the same with recognition
	Browser Load = 6 // Chromium, or other programs that compute much
	All     Load = 8 // all slots of a processor
)

// Admit waits until enough slots are free for a test and holds them until it ends. It returns at once if the test or
// a parent of it was admitted before. It also records how long the test takes, see limit.Budget.
func Admit(t testing.TB, load Load) {
	t.Helper()
	if !admissions.add(t.Name()) {
		return
	}
	began := time.Now()
	leave, err := admission(load)
	if err != nil {
		t.Fatalf("wait for free processors: %v", err)
	}
	admitted := time.Now()
	t.Cleanup(func() {
		leave()
		cpu := admissions.remove(t.Name())
		if err := limit.Write(t.Name(), t.Failed(), admitted.Sub(began), time.Since(admitted), cpu); err != nil {
			t.Error(err)
		}
	})
}

// admission waits until a test may run, and returns a function that gives back what the test holds. If its package holds slots, the test
// takes a lane, or nothing if its load is smaller, see MainInLanes.
func admission(load Load) (leave func(), err error) {
	switch {
	case load == reserved:
		lanes <- struct{}{}
		return func() { <-lanes }, nil
	case load < reserved:
		return func() {}, nil
	}
	slots, err := machine.lock(int(load), load > Browser)
	return func() {
		for _, f := range slots {
			_ = f.Close()
		}
	}, err
}

// admissions holds the running tests of this process.
var admissions = holders{names: map[string]time.Duration{}}

type holders struct {
	mu    sync.Mutex               // guards names
	names map[string]time.Duration // with the processor time that their servers used
}

// add adds a test and reports whether neither it nor a parent of it was there.
func (h *holders) add(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, there := h.admitted(name); there {
		return false
	}
	h.names[name] = 0
	return true
}

// admitted returns which test was admitted for a test: itself or a parent. The caller holds the lock.
func (h *holders) admitted(name string) (string, bool) {
	for name != "" {
		if _, there := h.names[name]; there {
			return name, true
		}
		name = name[:max(strings.LastIndexByte(name, '/'), 0)]
	}
	return "", false
}

// used adds processor time of a server to its test.
func (h *holders) used(name string, cpu time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if holder, there := h.admitted(name); there {
		h.names[holder] += cpu
	}
}

func (h *holders) remove(name string) (cpu time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	cpu = h.names[name]
	delete(h.names, name)
	return cpu
}
