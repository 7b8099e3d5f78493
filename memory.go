package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	figures "runtime/metrics"
	"time"

	"soniq/db"
)

const (
	memoryEvery = 20 * time.Second
	memorySpare = 64 << 20  // bytes the process may hold without needing them
	memoryQuiet = 256 << 20 // bytes that are allocated between two looks when little is going on: 13 MB a second
)

const (
	collectEvery = time.Second
	busyAlloc    = 24 << 20  // bytes a second that are allocated in a busy time
	roomyHeap    = 256 << 20 // bytes of heap below which a busy time may let it grow
	busyPercent  = 300       // GOGC of a busy time
)

// collectLess has garbage collected less often in a busy time, while the heap is small: collecting is then a tenth of the work of a call. The rest
// of the time memory is what counts. Where GOGC is set by hand it stays.
func collectLess(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	tick := time.NewTicker(collectEvery)
	defer tick.Stop()
	now := []figures.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	figures.Read(now)
	made, usual, busy := now[0].Value.Uint64(), 0, false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		figures.Read(now)
		was := busy
		busy = now[0].Value.Uint64()-made > busyAlloc && now[1].Value.Uint64() < roomyHeap
		made = now[0].Value.Uint64()
		switch {
		case busy && !was:
			usual = debug.SetGCPercent(busyPercent)
		case was && !busy:
			debug.SetGCPercent(usual)
		}
	}
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
