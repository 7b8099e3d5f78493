package main

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// part is a stage of the suite with its own line in the report.
type part struct {
	name     string
	expected int // top-level tests; 0 if the part has none

	mu       sync.Mutex // guards the fields below
	started  time.Time
	wall     time.Duration
	cpu      time.Duration // of the processes it started and waited for
	packages []packageUse
	outcomes map[testName]*outcome
	done     int      // top-level tests that have ended
	again    []string // tests that failed and passed when they ran again, with how often they failed
	flaky    []string // output of those tests when they failed
	errs     []string
	ended    bool
}

// elsewhere is part of the skip reason of a test that runs in another part of the suite.
const elsewhere = "in another part of the suite"

// packageUse records the resources that a package of end-to-end tests used, including the processes it started.
type packageUse struct {
	path      string
	wall, cpu time.Duration
}

func newPart(name string) *part {
	return &part{name: name, outcomes: map[testName]*outcome{}, started: time.Now()}
}

// forgetUnfinished removes the tests that have no outcome, because the suite was stopped.
func (p *part) forgetUnfinished() {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.outcomes, func(_ testName, o *outcome) bool { return o.action == "" })
}

// take records an event of a test.
func (p *part) take(e testEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := testName{e.Package, e.Test}
	o := p.outcomes[n]
	if o == nil {
		o = &outcome{}
		p.outcomes[n] = o
	}
	switch e.Action {
	case "output", "build-output":
		o.output = append(o.output, e.Output)
	case "pass", "fail", "skip":
		o.action, o.seconds = e.Action, e.Elapsed
		if e.Action == "pass" {
			o.output = nil
		}
		if e.Test != "" && !strings.Contains(e.Test, "/") {
			p.done++
		}
		if e.Action == "skip" && strings.Contains(strings.Join(o.output, ""), elsewhere) {
			delete(p.outcomes, n)
		}
	}
}

// fail records an error that belongs to no test.
func (p *part) fail(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errs = append(p.errs, text)
}

// end records the end of the part.
func (p *part) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wall, p.ended = time.Since(p.started), true
}

// addCPU adds the processor time of a process that has ended.
func (p *part) addCPU(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cpu += d
}

// addPackage records the resources that a package used.
func (p *part) addPackage(u packageUse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.packages = append(p.packages, u)
}

// failed returns the tests that ended with fail or that never ended, sorted. A package is listed if it failed without a failing test.
func (p *part) failed() []testName {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []testName
	blamed := map[string]bool{}
	for n, o := range p.outcomes {
		if n.Test != "" && o.action != "pass" && o.action != "skip" {
			all = append(all, n)
			blamed[n.Package] = true
		}
	}
	for n, o := range p.outcomes {
		if n.Test == "" && o.action == "fail" && !blamed[n.Package] {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b testName) int { return strings.Compare(a.Package+a.Test, b.Package+b.Test) })
	return all
}

// output returns the output of a test and its subtests.
func (p *part) output(n testName) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var text strings.Builder
	for _, name := range p.names() {
		if name == n || name.Package == n.Package && strings.HasPrefix(name.Test, n.Test+"/") {
			text.WriteString(strings.Join(p.outcomes[name].output, ""))
		}
	}
	return text.String()
}

// names returns all tests, sorted. The caller holds the lock.
func (p *part) names() []testName {
	all := make([]testName, 0, len(p.outcomes))
	for n := range p.outcomes {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b testName) int { return strings.Compare(a.Package+"/"+a.Test, b.Package+"/"+b.Test) })
	return all
}

// count returns how many tests and subtests passed, failed and were skipped.
func (p *part) count() (passed, failed, skipped int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n, o := range p.outcomes {
		switch {
		case n.Test == "":
		case o.action == "pass":
			passed++
		case o.action == "skip":
			skipped++
		default:
			failed++
		}
	}
	return passed, failed, skipped
}
