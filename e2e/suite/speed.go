package main

import (
	"crypto/sha256"
	"runtime"
	"sync"
	"time"
)

const (
	speedBlocks = 192                    // blocks of a megabyte that each processor hashes
	speedTime   = 400 * time.Millisecond // time for that on the machine that limits were set on
)

// slowness returns how many times as long a computation takes here as on the machine that limits were set on, at least 1. All
// processors compute at once and the last one counts, so a processor that another program uses makes the machine slow.
func slowness() float64 {
	began := time.Now()
	var all sync.WaitGroup
	for range runtime.NumCPU() {
		all.Go(hashBlocks)
	}
	all.Wait()
	return max(1, float64(time.Since(began))/float64(speedTime))
}

func hashBlocks() {
	block := make([]byte, 1<<20)
	for range speedBlocks {
		sum := sha256.Sum256(block)
		copy(block, sum[:])
	}
}
