package rig

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"soniq/e2e/limit"
)

// slotPool is a number of slots that all processes of the machine share. Each slot is a file that a process locks.
type slotPool struct {
	name  string
	count func() int // may change
}

// machine holds the processor slots of the machine.
var machine = slotPool{name: "slot", count: slotCount}

// slotCount returns the slots of the machine. A machine that is four times as slow has half of them: tests wait more than they compute.
// There are fewer of them while a package holds some, see MainInLanes.
func slotCount() int {
	count := max(int(All), int(float64(slotsPerProcessor*runtime.NumCPU())/math.Sqrt(limit.Slowness())))
	if reserved == 0 && reservedElsewhere() {
		return max(int(Calls), count-int(Browser))
	}
	return count
}

// reserved is the load of the tests for which this process holds slots, and lanes has room for those that may run at once. They are written
// before the tests run.
var (
	reserved Load
	lanes    chan struct{}
)

const reservation = "in-lanes"

// MainInLanes calls Main for a package whose tests all need much: it holds slots for tests of this load until all have run. Otherwise each
// test would wait long for its many slots. One such test runs at a time, or more on several fast processors. Tests with a smaller load run
// beside them. One process of the machine may hold slots in this way. In a second one each test waits for its own.
func MainInLanes(m *testing.M, load Load) {
	f, err := lockFile(reservation)
	if err == nil && syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		reserved, lanes = load, make(chan struct{}, max(1, int(float64(runtime.NumCPU())/limit.Slowness()+0.5)))
	}
	Main(m) // ends the process, which frees the lock
}

// reservedElsewhere reports whether a process holds slots for its tests.
func reservedElsewhere() bool {
	f, err := lockFile(reservation)
	if err != nil {
		return false
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
}

// inLine lets one test of this process wait for slots at a time, because waiting for a file lock blocks a thread.
var inLine sync.Mutex

// patience is the time for which a test that needs a whole processor lets others pass.
const patience = 3 * time.Minute

// lock locks n slots, or all if there are fewer. A large test lets others pass for some time. Otherwise all would wait with it for the
// longest test that runs.
func (p slotPool) lock(n int, large bool) (slots []*os.File, err error) {
	inLine.Lock()
	defer inLine.Unlock()
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for began := time.Now(); large && time.Since(began) < limit.Hang(patience); <-again.C {
		if slots, err = p.try(n); err != nil || len(slots) > 0 {
			return slots, err
		}
	}
	return p.collect(n)
}

// collect locks n slots as they become free. One test of the machine collects slots at a time, so that two which need many do not wait for
// each other.
func (p slotPool) collect(n int) (slots []*os.File, err error) {
	gate, err := lockFile(p.name + "-gate")
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
		if slots, err = p.more(slots, n); err != nil || len(slots) >= min(n, p.count()) {
			return slots, err
		}
		<-tick.C
	}
}

// try locks n slots, or all if there are fewer. It locks none if too few are free, or if another test collects slots.
func (p slotPool) try(n int) (slots []*os.File, err error) {
	gate, err := lockFile(p.name + "-gate")
	if err != nil {
		return nil, err
	}
	defer gate.Close()
	if syscall.Flock(int(gate.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil, nil
	}
	if slots, err = p.more(nil, n); err != nil || len(slots) >= min(n, p.count()) {
		return slots, err
	}
	for _, f := range slots {
		_ = f.Close()
	}
	return nil, nil
}

// more locks free slots until there are n, and returns them with those that were locked before.
func (p slotPool) more(slots []*os.File, n int) ([]*os.File, error) {
	for i, of := 0, p.count(); i < of && len(slots) < n; i++ {
		f, err := lockFile(fmt.Sprintf("%s-%d", p.name, i))
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
