package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"

	"soniq/db"
)

const (
	memoryEvery = 20 * time.Second
	memorySpare = 64 << 20  // bytes the process may hold without needing them
	memoryQuiet = 256 << 20 // bytes that are allocated between two looks when little is going on: 13 MB a second
)

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
