package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// report prints the failures, the time of each part, the slowest tests and the tests that ran again. It returns an error if a part
// failed or a test did not run.
func (s *suite) report(w io.Writer) error {
	failures := 0
	for _, p := range s.parts {
		if s.ctx.Err() != nil {
			p.forgetUnfinished()
		}
		failures += p.reportFailures(w)
	}
	s.reportTimes(w)
	s.reportSlowest(w)
	slow := s.reportRecords(w)
	s.reportRepeats(w)
	passed, failed, skipped := 0, 0, 0
	for _, p := range s.parts {
		a, b, c := p.count()
		passed, failed, skipped = passed+a, failed+b, skipped+c
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if err := s.writeResults(); err != nil {
		return err
	}
	switch {
	case s.ctx.Err() != nil:
		return errors.New("stopped before the end")
	case failures > 0:
		return fmt.Errorf("%d failures, see above", failures)
	case slow > 0:
		return fmt.Errorf("%d tests took more than %d times their budget: make them shorter, or give limit.Budget a reason", slow, tooLong)
	case passed == 0:
		return errors.New("no test ran")
	}
	return nil
}

// reportFailures prints the failures of a part and returns their number.
func (p *part) reportFailures(w io.Writer) (n int) {
	for _, text := range p.errs {
		fmt.Fprintf(w, "\n=== %s failed\n%s\n", p.name, text)
		n++
	}
	printed := map[testName]bool{}
	for _, f := range p.failed() {
		n++
		if root := f.root(); !printed[root] {
			printed[root] = true
			fmt.Fprintf(w, "\n=== %s %s failed\n%s", f.Package, root.Test, p.output(root))
		}
	}
	return n
}

func (s *suite) reportTimes(w io.Writer) {
	fmt.Fprintf(w, "\n%-14s %8s %8s %7s\n", "part", "time", "CPU", "tests")
	for _, p := range s.parts {
		passed, failed, skipped := p.count()
		fmt.Fprintf(w, "%-14s %8s %8s %7d\n", p.name, p.wall.Round(time.Second), p.cpu.Round(time.Second), passed+failed+skipped)
	}
	fmt.Fprintf(w, "%-14s %8s\n", "all", time.Since(s.started).Round(time.Second))
	for _, p := range s.parts {
		slices.SortFunc(p.packages, func(a, b packageUse) int { return int(b.cpu - a.cpu) })
		for _, u := range p.packages {
			fmt.Fprintf(w, "  %-24s %5s %8s\n", u.path, u.wall.Round(time.Second), u.cpu.Round(time.Second))
		}
	}
}

// reportSlowest prints the ten slowest unit tests.
func (s *suite) reportSlowest(w io.Writer) {
	type entry struct {
		name    testName
		seconds float64
	}
	var all []entry
	for _, p := range s.parts {
		if len(p.packages) > 0 { // end-to-end tests have records of their own
			continue
		}
		for n, o := range p.outcomes {
			if n.Test != "" && n == n.root() {
				all = append(all, entry{n, o.seconds})
			}
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return int(1000 * (b.seconds - a.seconds)) })
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(w, "\nslowest unit tests:")
	for _, e := range all[:min(10, len(all))] {
		fmt.Fprintf(w, "%7.1f s  %s %s\n", e.seconds, e.name.Package, e.name.Test)
	}
}

// reportRepeats names the tests that passed only when they ran again.
func (s *suite) reportRepeats(w io.Writer) {
	var all []string
	for _, p := range s.parts {
		for i, what := range p.again {
			all = append(all, what)
			fmt.Fprintf(w, "\n=== %s; it printed at first:\n%s", what, p.flaky[i])
		}
	}
	if len(all) == 0 {
		fmt.Fprintln(w, "\nno test ran again")
		return
	}
	fmt.Fprintf(w, "\nfailed and passed when they ran again; each hides a fault of the test or of soniq:\n  %s\n",
		strings.Join(all, "\n  "))
}
