package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"soniq/e2e/limit"
)

// unitLimit is the time after which the unit tests of a package count as hanging.
const unitLimit = 20 * time.Minute

// tooLong is the multiple of its budget that a test may take before the suite fails.
const tooLong = 3

// shortestRuns returns the shortest run of each end-to-end test, longest first. A run in which the test failed does not count.
func (s *suite) shortestRuns() (all []limit.Record) {
	shortest := map[string]limit.Record{}
	for _, r := range limit.Read(s.records) {
		if before, ok := shortest[r.Test]; !r.Failed && (!ok || r.Seconds < before.Seconds) {
			shortest[r.Test] = r
		}
	}
	all = slices.Collect(maps.Values(shortest))
	slices.SortFunc(all, func(a, b limit.Record) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return all
}

// tooSlow returns the end-to-end tests that took more than tooLong times their budget. A soak run has none.
func (s *suite) tooSlow() (some []limit.Record) {
	if os.Getenv("SONIQ_SOAK") != "" {
		return nil
	}
	for _, r := range s.shortestRuns() {
		if r.Seconds > tooLong*r.Budget*s.slowness {
			some = append(some, r)
		}
	}
	return some
}

// reportRecords prints the end-to-end tests that took longest after they were admitted, and those that took longer than their budget. It
// returns how many took far longer.
func (s *suite) reportRecords(w io.Writer) (failures int) {
	all := s.shortestRuns()
	fmt.Fprintln(w, "\nslowest end-to-end tests, without the time they waited for free processors:")
	for _, r := range all[:min(10, len(all))] {
		fmt.Fprintf(w, "%7.1f s  %s (servers: %.1f s of CPU)\n", r.Seconds, r.Test, r.CPU)
	}
	for _, r := range all {
		if budget := r.Budget * s.slowness; r.Seconds > budget {
			fmt.Fprintf(w, "over its budget of %.0f s: %s took %.1f s\n", budget, r.Test, r.Seconds)
		}
	}
	return len(s.tooSlow())
}
