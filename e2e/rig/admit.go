package rig

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
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
	slots, err := lockSlots("slot", slotCount(), min(int(load), slotCount()))
	if err != nil {
		t.Fatalf("wait for free processors: %v", err)
	}
	admitted := time.Now()
	t.Cleanup(func() {
		for _, f := range slots {
			_ = f.Close()
		}
		cpu := admissions.remove(t.Name())
		if err := limit.Write(t.Name(), t.Failed(), admitted.Sub(began), time.Since(admitted), cpu); err != nil {
			t.Error(err)
		}
	})
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

// slotCount returns the slots of the machine, enough for any test. A machine that is four times as slow has half of them: tests wait more
// than they compute.
func slotCount() int {
	return max(int(All), int(float64(slotsPerProcessor*runtime.NumCPU())/math.Sqrt(limit.Slowness())))
}

// inLine lets one test of this process wait for slots at a time, because waiting for a file lock blocks a thread.
var inLine sync.Mutex

// patience is the time for which a test that needs more than half of the slots lets others pass.
const patience = 3 * time.Minute

// lockSlots locks n of the slots with a name. A test that needs more than half of them lets others pass for some time. Otherwise all would
// wait with it for the longest test that runs.
func lockSlots(name string, of, n int) (slots []*os.File, err error) {
	inLine.Lock()
	defer inLine.Unlock()
	for began := time.Now(); 2*n > of && time.Since(began) < limit.Hang(patience); time.Sleep(500 * time.Millisecond) {
		if slots, err = tryLock(name, of, n); err != nil || len(slots) == n {
			return slots, err
		}
	}
	return collect(name, of, n)
}

// collect locks n slots as they become free. One test of the machine collects slots at a time, so that two which need many do not wait for
// each other.
func collect(name string, of, n int) (slots []*os.File, err error) {
	gate, err := lockFile(name + "-gate")
	if err != nil {
		return nil, err
	}
	defer gate.Close()
	if err := syscall.Flock(int(gate.Fd()), syscall.LOCK_EX); err != nil {
		return nil, err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if slots, err = lockMore(slots, name, of, n); err != nil || len(slots) == n {
			return slots, err
		}
		<-tick.C
	}
}

// tryLock locks n slots, or none if fewer are free or another test collects slots.
func tryLock(name string, of, n int) (slots []*os.File, err error) {
	gate, err := lockFile(name + "-gate")
	if err != nil {
		return nil, err
	}
	defer gate.Close()
	if syscall.Flock(int(gate.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil, nil
	}
	if slots, err = lockMore(nil, name, of, n); err != nil || len(slots) == n {
		return slots, err
	}
	for _, f := range slots {
		_ = f.Close()
	}
	return nil, nil
}

// lockMore locks free slots until there are n, and returns them with those that were locked before.
func lockMore(slots []*os.File, name string, of, n int) ([]*os.File, error) {
	for i := 0; i < of && len(slots) < n; i++ {
		f, err := lockFile(fmt.Sprintf("%s-%d", name, i))
		if err != nil {
			return slots, err
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			slots = append(slots, f)
		} else {
			_ = f.Close()
		}
	}
	return slots, nil
}
