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
	loadEvery   = 250 * time.Millisecond
	quietLooks  = 4         // in a row that end a busy time
	busyAlloc   = 6 << 20   // bytes that are allocated between two looks in a busy time: 24 MB a second
	roomyHeap   = 256 << 20 // bytes of heap below which a busy time may let it grow
	busyPercent = 300       // GOGC of a busy time
)

// collectByLoad has garbage collected rarely in a busy time, while the heap is small, for collecting is a tenth of the work of a call then. What
// that has made is given back when it ends. Where GOGC is set by hand it stays.
func collectByLoad(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	tick := time.NewTicker(loadEvery)
	defer tick.Stop()
	now := []figures.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	figures.Read(now)
	made, usual, quiet := now[0].Value.Uint64(), 0, quietLooks
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		figures.Read(now)
		little := now[0].Value.Uint64()-made <= busyAlloc
		much := !little && now[1].Value.Uint64() < roomyHeap
		made = now[0].Value.Uint64()
		switch {
		case much && quiet >= quietLooks:
			usual, quiet = debug.SetGCPercent(busyPercent), 0
		case much:
			quiet = 0
		case quiet < quietLooks:
			if quiet++; quiet == quietLooks {
				debug.SetGCPercent(usual)
				if little { // else the heap has become large, and is in use
					debug.FreeOSMemory()
				}
			}
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
