package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"soniq/e2e/limit"
)

// unitLimit is the time after which the unit tests of a package count as hanging.
const unitLimit = 20 * time.Minute

// tooLong is the multiple of its budget that a test may take before the suite fails.
const tooLong = 3

// reportRecords prints the end-to-end tests that took longest after they were admitted, and those that took longer than their budget. It
// returns how many took far longer. A run in which the test failed does not count.
func (s *suite) reportRecords(w io.Writer) (failures int) {
	all := limit.Read(s.records)
	slices.SortFunc(all, func(a, b limit.Record) int { return int(1000 * (b.Seconds - a.Seconds)) })
	fmt.Fprintln(w, "\nslowest end-to-end tests, without the time they waited for free processors:")
	for _, r := range all[:min(10, len(all))] {
		fmt.Fprintf(w, "%7.1f s  %s (servers: %.1f s of CPU)\n", r.Seconds, r.Test, r.CPU)
	}
	for _, r := range all {
		budget := r.Budget * s.slowness
		if r.Failed || r.Seconds <= budget { // a wait that hangs fails the test, which is reported by itself
			continue
		}
		fmt.Fprintf(w, "over its budget of %.0f s: %s took %.1f s\n", budget, r.Test, r.Seconds)
		if r.Seconds > tooLong*budget && os.Getenv("SONIQ_SOAK") == "" {
			failures++
		}
	}
	return failures
}
