package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"soniq/e2e/limit"
)

// unitLimit is how long all unit tests of a package may take before they count as hanging.
const unitLimit = 20 * time.Minute

// reportRecords prints the end-to-end tests that took longest after they were admitted, and those that took longer than their budget.
func (s *suite) reportRecords(w io.Writer) {
	all := limit.Read(s.records)
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(a, b limit.Record) int { return int(1000 * (b.Seconds - a.Seconds)) })
	fmt.Fprintln(w, "\nslowest end-to-end tests, without the time they waited for free processors:")
	for _, r := range all[:min(10, len(all))] {
		fmt.Fprintf(w, "%7.1f s  %s (servers: %.1f s of CPU)\n", r.Seconds, r.Test, r.CPU)
	}
	for _, r := range all {
		if r.Seconds > r.Budget*s.slowness {
			fmt.Fprintf(w, "over its budget of %.0f s: %s took %.1f s\n", r.Budget, r.Test, r.Seconds)
		}
	}
}
