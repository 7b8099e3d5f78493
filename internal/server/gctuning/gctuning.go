// Package gctuning adapts the garbage collector to the load of calls, and returns spare memory to the system.
package gctuning

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	figures "runtime/metrics"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
)

const (
	memoryEvery = 20 * time.Second
	memorySpare = 64 << 20  // bytes that the process may hold in excess
	memoryQuiet = 256 << 20 // bytes allocated between two samples with low load: 13 MB/s
)

const (
	loadEvery   = 250 * time.Millisecond
	quietLooks  = 4         // consecutive samples with low load that end a busy period
	busyAlloc   = 6 << 20   // bytes allocated between two samples with high load: 24 MB/s
	roomyHeap   = 256 << 20 // bytes of heap up to which the heap may grow under load
	busyPercent = 300       // GOGC under load
)

// Tune raises GOGC while the allocation rate is high and the heap is small. Garbage collection is a tenth of the CPU of a call then. At
// the end of the busy period it returns memory to the system. It does nothing if GOGC is set.
func Tune(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	tick := clock.NewTicker(loadEvery)
	defer tick.Stop()
	now := []figures.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	figures.Read(now)
	w, usual := loadDetector{made: now[0].Value.Uint64(), quiet: quietLooks}, 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		figures.Read(now)
		switch w.sample(now[0].Value.Uint64(), now[1].Value.Uint64()) {
		case busy:
			usual = debug.SetGCPercent(busyPercent)
		case calm:
			debug.SetGCPercent(usual)
			debug.FreeOSMemory()
		case crowded:
			debug.SetGCPercent(usual)
		}
	}
}

// loadDetector detects busy periods by the bytes allocated between two samples.
type loadDetector struct {
	made  uint64 // bytes allocated until the last sample
	quiet int    // consecutive samples with low load
}

// loadChange is a change of the load.
type loadChange int

const (
	same    loadChange = iota
	busy               // a busy period begins
	calm               // the busy period has ended
	crowded            // the busy period continues, with a heap that is too large to grow
)

// sample takes a sample: the bytes allocated since the start, and the bytes in use.
func (w *loadDetector) sample(made, live uint64) loadChange {
	little := made-w.made <= busyAlloc
	much := !little && live < roomyHeap
	w.made = made
	switch {
	case much && w.quiet >= quietLooks:
		w.quiet = 0
		return busy
	case much:
		w.quiet = 0
	case w.quiet < quietLooks:
		if w.quiet++; w.quiet < quietLooks {
			return same
		}
		if little {
			return calm
		}
		return crowded
	}
	return same
}

// ReleaseMemory returns unused memory to the system after a busy period. The runtime would do so only minutes later.
func ReleaseMemory(ctx context.Context, d *db.DB) {
	tick := time.NewTicker(memoryEvery)
	defer tick.Stop()
	var m runtime.MemStats
	var made, floor uint64 // bytes allocated at the last sample; bytes held after the last successful attempt
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		runtime.ReadMemStats(&m)
		quiet := m.TotalAlloc-made < memoryQuiet
		if made = m.TotalAlloc; quiet && m.HeapSys-m.HeapReleased > floor+memorySpare {
			_ = d.Shrink(ctx) // retried after the next busy period
			debug.FreeOSMemory()
			runtime.ReadMemStats(&m)
			floor = m.HeapSys - m.HeapReleased
		}
	}
}
