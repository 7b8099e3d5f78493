package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

const (
	mostRepeats  = 2  // runs of a failed test after the first
	mostFailures = 20 // failed tests, subtests included, above which nothing runs again, as that is no accident
)

// repeat runs the failed tests of each part, and those that were far too slow, again. It runs one at a time, after everything else has
// ended. A data race is a failure for good. See docs/decisions/0015.
func (s *suite) repeat() {
	if os.Getenv("SONIQ_SOAK") != "" { // a soak run looks for rare failures
		return
	}
	s.repeatSlow()
	for _, p := range s.parts {
		failed := p.failed()
		if len(failed) == 0 || len(failed) > mostFailures {
			continue
		}
		var roots []testName
		for _, n := range failed {
			if n.Test != "" && !strings.Contains(p.output(n.root()), "DATA RACE") && !slices.Contains(roots, n.root()) {
				roots = append(roots, n.root())
			}
		}
		for _, n := range roots {
			s.repeatTest(p, n)
		}
	}
}

// repeatSlow runs each test again that took far longer than its budget. The machine may have become slower after it was measured, and a
// test that hangs takes as long again.
func (s *suite) repeatSlow() {
	slow := s.tooSlow()
	if len(slow) > mostFailures {
		return
	}
	for _, r := range slow {
		if p, n, ok := s.find(r.Test); ok && s.ctx.Err() == nil {
			s.printf("%s: %s took %.0f s and runs again", p.name, n.Test, r.Seconds)
			p.forget(n.root())
			s.events(p, s.again(p, n.root()))
		}
	}
}

// find returns the test of a name and the part that ran it.
func (s *suite) find(test string) (p *part, n testName, ok bool) {
	for _, p := range s.parts {
		p.mu.Lock()
		for n := range p.outcomes {
			if n.Test == test {
				p.mu.Unlock()
				return p, n, true
			}
		}
		p.mu.Unlock()
	}
	return nil, testName{}, false
}

// repeatTest runs a test again until it passes, at most mostRepeats times.
func (s *suite) repeatTest(p *part, n testName) {
	for failures := 1; failures <= mostRepeats && s.ctx.Err() == nil; failures++ {
		s.printf("%s: %s failed and runs again", p.name, n.Test)
		first := p.output(n)
		p.forget(n)
		s.events(p, s.again(p, n))
		if !slices.ContainsFunc(p.failed(), func(f testName) bool { return f.root() == n }) {
			p.passedAgain(fmt.Sprintf("%s %s, failed %d times", n.Package, n.Test, failures), first)
			return
		}
	}
}

// again prepares the run of one test in the way of its part.
func (s *suite) again(p *part, n testName) *exec.Cmd {
	only := "^" + regexp.QuoteMeta(n.Test) + "$"
	for _, x := range s.compiled {
		if x.path == n.Package {
			return s.runBinary(x, "-test.run="+only)
		}
	}
	x := []testPackage{{path: n.Package}}
	switch p.name {
	case unitPostgres:
		return s.postgresTests(0, x, "-run", only)
	case unitEngine:
		return s.engineTests(0, x, "-run", only)
	}
	return s.raceTests(0, x, "-run", only)
}

// forget removes the results of a test and its subtests.
func (p *part) forget(n testName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.outcomes {
		if name.root() == n || name == (testName{n.Package, ""}) {
			delete(p.outcomes, name)
		}
	}
	p.done--
}

// passedAgain records a test that passed only when it ran again, with its output of the first failure.
func (p *part) passedAgain(what, output string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.again = append(p.again, what)
	p.flaky = append(p.flaky, output)
}
