package server

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	figures "runtime/metrics"
	"time"

	"soniq/internal/platform/db"
)

const (
	memoryEvery = 20 * time.Second
	memorySpare = 64 << 20  // bytes the process may hold without needing them
	memoryQuiet = 256 << 20 // bytes that are allocated between two looks when little is going on: 13 MB a second
)

const (
	loadEvery   = 250 * time.Millisecond
	quietLooks  = 4         // in a row that end a busy time
	busyAlloc   = 6 << 20   // bytes that are allocated between two looks in a busy time: 24 MB a second
	roomyHeap   = 256 << 20 // bytes of heap below which a busy time may let it grow
	busyPercent = 300       // GOGC of a busy time
)

// collectByLoad has garbage collected rarely in a busy time, while the heap is small, for collecting is a tenth of the work of a
// call then. What that has made is given back when it ends. Where GOGC is set by hand it stays.
func collectByLoad(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	tick := time.NewTicker(loadEvery)
	defer tick.Stop()
	now := []figures.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	figures.Read(now)
	w, usual := workload{made: now[0].Value.Uint64(), quiet: quietLooks}, 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		figures.Read(now)
		switch w.look(now[0].Value.Uint64(), now[1].Value.Uint64()) {
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

// A workload tells busy times from others, by what is allocated between two looks.
type workload struct {
	made  uint64 // bytes that were allocated until the last look
	quiet int    // looks in a row at which little was going on
}

// A turn is what has changed with the load.
type turn int

const (
	same    turn = iota
	busy         // a busy time begins
	calm         // it is over
	crowded      // it goes on, with a heap that is too large to let it grow further
)

// look takes what was allocated since the start, and what of it is in use, in bytes.
func (w *workload) look(made, live uint64) turn {
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

// giveBackMemory returns to the system what a busy time left behind. The runtime does so by itself, but only minutes later.
func giveBackMemory(ctx context.Context, d *db.DB) {
	tick := time.NewTicker(memoryEvery)
	defer tick.Stop()
	var m runtime.MemStats
	var made, floor uint64 // bytes allocated at the last look; bytes held after the last time it helped
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		runtime.ReadMemStats(&m)
		quiet := m.TotalAlloc-made < memoryQuiet
		if made = m.TotalAlloc; quiet && m.HeapSys-m.HeapReleased > floor+memorySpare {
			_ = d.Shrink(ctx) // it is tried again when the next busy time is over
			debug.FreeOSMemory()
			runtime.ReadMemStats(&m)
			floor = m.HeapSys - m.HeapReleased
		}
	}
}
