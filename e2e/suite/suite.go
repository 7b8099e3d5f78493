package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// suite is one run of the test suite.
type suite struct {
	ctx         context.Context
	stop        context.CancelFunc
	dir         string // for binaries and records, removed at the end
	binary      string // soniq with the race detector
	records     string // records of the tests about their servers and their time, see rig.Record
	environment []string
	compiled    []testPackage // packages whose test binaries are in dir
	slowness    float64       // at least 1
	started     time.Time

	mu    sync.Mutex // guards parts and the output
	parts []*part
}

// begin adds a part.
func (s *suite) begin(name string, expected int) *part {
	p := newPart(name)
	p.expected = expected
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts = append(s.parts, p)
	return p
}

// test runs all parts: first those that every part needs, then the tests with audio and phones, which wait, beside those that compute.
func (s *suite) test() {
	progress := s.follow()
	defer progress()
	all, err := s.list()
	if err != nil {
		s.begin("list", 0).fail(err.Error())
		return
	}
	if !s.buildServer(all) {
		return
	}
	built, ok := make(chan bool, 1), false
	s.both(func() {
		s.realTime("real-time", all.realtime)
		if <-built {
			s.both(func() { s.endToEnd(all.e2e) }, func() { s.realTime("punctual", all.punctual) })
		}
	}, func() {
		ok = s.buildTests(all)
		if built <- ok; ok {
			s.check()
			s.lowPriority(all)
		}
	})
	if ok {
		s.repeat()
	}
}

// lowPriority runs what computes, at a low priority, beside the tests that need the processors on time.
func (s *suite) lowPriority(all packages) {
	s.unitEngine(all.engine)
	s.both(func() { s.unit(all.unit) }, func() {
		s.unitPostgres(all.database)
		s.fuzz(all.fuzz)
	})
}

// endToEndAlone runs the end-to-end tests alone. With SONIQ_SOAK their loops are long and they run on both databases.
func (s *suite) endToEndAlone() {
	progress := s.follow()
	defer progress()
	all, err := s.list()
	if err != nil {
		s.begin("list", 0).fail(err.Error())
		return
	}
	all.realtime = nil
	if s.buildServer(all) && s.buildTests(all) {
		s.endToEnd(all.e2e)
		s.fuzz(all.fuzz)
		s.repeat()
	}
}

// both runs two functions at the same time.
func (s *suite) both(a, b func()) {
	var all sync.WaitGroup
	all.Go(a)
	all.Go(b)
	all.Wait()
}

// limit scales a time with the speed of the machine.
func (s *suite) limit(d time.Duration) string {
	return time.Duration(float64(d) * s.slowness).Round(time.Second).String()
}

// processors returns the number of processors and more, for go test -p.
func processors(more int) string { return strconv.Itoa(runtime.NumCPU() + more) }

// packages are the test packages of the module.
type packages struct {
	unit     []testPackage
	realtime []testPackage // unit tests of audio at its own pace
	punctual []testPackage // unit tests with timers
	engine   []testPackage // unit tests that run without the race detector
	database []testPackage // unit tests that run on each database
	e2e      []testPackage
	fuzz     []testPackage // end-to-end tests that use all the processors they can get
}

// testPackage is a package with tests.
type testPackage struct {
	path, dir string
	tests     int // top-level
	each      bool
}

// list finds the test packages and counts their tests.
func (s *suite) list() (all packages, err error) {
	c := s.command(0, "", "go", "list", "-f", `{{.ImportPath}} {{.Dir}} {{len .TestGoFiles}} {{len .XTestGoFiles}}`, "./...")
	out, err := c.Output()
	if err != nil {
		return all, fmt.Errorf("list packages: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) != 4 || f[2] == "0" && f[3] == "0" {
			continue
		}
		p, err := count(testPackage{path: f[0], dir: f[1]})
		if err != nil {
			return all, err
		}
		all.add(p)
	}
	return all, nil
}

func (all *packages) add(p testPackage) {
	switch {
	case p.path == fuzzPackage:
		all.fuzz = append(all.fuzz, p)
	case strings.Contains(p.path, "/e2e/"):
		all.e2e = append(all.e2e, p)
	case under([]string{engine}, p.path), slices.Contains(sequential, p.path):
		all.engine = append(all.engine, p)
	case under(realtime, p.path):
		all.realtime = append(all.realtime, p)
	case under(punctual, p.path):
		all.punctual = append(all.punctual, p)
	default:
		all.unit = append(all.unit, p)
		if p.each {
			all.database = append(all.database, p)
		}
	}
}

// count reads how many tests a package has and whether they use both databases.
func count(p testPackage) (testPackage, error) {
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return p, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		text, err := os.ReadFile(p.dir + "/" + e.Name())
		if err != nil {
			return p, err
		}
		p.tests += strings.Count("\n"+string(text), "\nfunc Test") - strings.Count("\n"+string(text), "\nfunc TestMain(")
		p.each = p.each || strings.Contains(string(text), "dbtest.Each(") || strings.Contains(string(text), `"SONIQ_TEST_POSTGRES"`)
	}
	return p, nil
}

func total(all []testPackage) (n int) {
	for _, p := range all {
		n += p.tests
	}
	return n
}

func paths(all []testPackage) (names []string) {
	for _, p := range all {
		names = append(names, p.path)
	}
	return names
}

// printf writes a line with the time since the start.
func (s *suite) printf(format string, args ...any) {
	d := time.Since(s.started).Round(time.Second)
	fmt.Fprintf(os.Stderr, "%3d:%02d %s\n", int(d.Minutes()), int(d.Seconds())%60, fmt.Sprintf(format, args...))
}
