package main

import (
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	unitPostgres = "unit-postgres"
	unitEngine   = "unit-engine"
)

// compileFlags make builds of every part the same, independently of the folder of the tree, so that the build cache
// serves all of them. Test binaries need no debug information.
var compileFlags = []string{"-trimpath", "-vet=off", "-ldflags=-w"}

// realtime names the unit tests that handle audio at its own pace, each with its sub-packages. They run while nothing but the compiler uses
// the processors, at the lowest priority: a late processor would fail them.
var realtime = []string{"soniq/internal/protocol/media", "soniq/internal/intelligence/voiceagent"}

// engine names the recognition and language models, with its sub-packages. Its tests compute for minutes under the race detector. The
// detector watches the same code in the server of the end-to-end tests.
const engine = "soniq/internal/intelligence/engine"

// sequential names packages whose tests compute in one goroutine: they read the source, or compare a function with a table of results. They
// run without the race detector, with those of the engine.
var sequential = []string{"soniq/internal", "soniq/internal/api/rest/published", "soniq/internal/platform/clock/localday",
	"soniq/internal/telephony/number/locality"}

// computing names tests that compute for seconds under the race detector, by package. They run without it, with those of
// the engine. The detector watches the other tests of their packages.
var computing = map[string][]string{
	"soniq/cmd/consolebuild":          {"TestBundle_SameTwiceAndWithinBudgets"},
	"soniq/internal/customer/contact": {"TestLookup_TenThousandNumbersFiveFormats"},
	"soniq/internal/intelligence/memory": {"TestBinaryCodes_Recall", "TestDatabaseIndexes_SameResultsAsInMemory", "TestEvaluateSearch",
		"TestInvertedIndex_PrunedSearchIsExact", "TestSearch_LabelledMisspellings", "TestSearch_ScoresSeparateAnswers"},
	"soniq/internal/telephony/number": {"TestImport_TenThousandNumbers"},
	"soniq/internal/telephony/trunk":  {"TestMaybeEmergency_AllCountries"},
}

// computingTests returns the tests of computing as a pattern, and their packages.
func computingTests() (pattern string, all []testPackage) {
	var names []string
	for _, path := range slices.Sorted(maps.Keys(computing)) {
		names = append(names, computing[path]...)
		all = append(all, testPackage{path: path, tests: len(computing[path])})
	}
	return "^(" + strings.Join(names, "|") + ")$", all
}

// punctual names the unit tests with timers that a late processor would fail, each with its sub-packages. They compute little and run
// beside the end-to-end tests, at their priority.
var punctual = []string{"soniq/internal/protocol/sip", "soniq/internal/protocol/stir"}

// buildServer compiles the server and the real-time unit tests with the race detector.
func (s *suite) buildServer(all packages) bool {
	p := s.begin("build", 0)
	defer p.end()
	ok := s.execute(p, s.command(0, "", "scripts/race", "build", "-trimpath", "-o", s.binary, "./cmd/soniq")) &&
		s.execute(p, s.command(0, "", "go", "build", "-trimpath", "-o", filepath.Join(s.dir, "test2json"), "cmd/test2json"))
	if len(all.realtime) > 0 {
		ok = ok && s.execute(p, s.command(0, "", flat("scripts/race", "test", "-c", "-o", s.dir+"/race/", compileFlags,
			paths(slices.Concat(all.realtime, all.punctual)))...))
	}
	s.compiled = slices.Concat(s.compiled, all.realtime, all.punctual)
	return ok
}

// buildTests compiles without the race detector: the end-to-end tests, the server that they run on PostgreSQL, and the one with the tools
// that the official MCP suite calls.
func (s *suite) buildTests(all packages) bool {
	p := s.begin("build tests", 0)
	defer p.end()
	ok := s.execute(p, s.plainGo(flat("test", "-c", "-o", s.dir+"/", compileFlags, paths(slices.Concat(all.e2e, all.fuzz)))...)) &&
		s.execute(p, s.plainGo("build", "-trimpath", "-o", filepath.Join(s.dir, "plain"), "./cmd/soniq")) &&
		s.execute(p, s.plainGo("build", "-trimpath", "-tags", "conformance", "-o", filepath.Join(s.dir, "everything"), "./cmd/soniq"))
	s.compiled = slices.Concat(s.compiled, all.e2e, all.fuzz)
	return ok
}

// plainGo prepares a go command without cgo, at the lowest priority.
func (s *suite) plainGo(args ...string) *exec.Cmd {
	c := s.command(low, "", flat("go", args)...)
	c.Env = append(c.Env, "CGO_ENABLED=0")
	return c
}

// realTime runs compiled unit tests at the usual priority.
func (s *suite) realTime(name string, all []testPackage) {
	if len(all) == 0 {
		return
	}
	p := s.begin(name, total(all))
	defer p.end()
	for _, x := range all {
		s.events(p, s.runBinary(x))
	}
}

// fuzzPackage sends a running server all kinds of network input as fast as it can.
const fuzzPackage = "soniq/e2e/fuzz"

// fuzz fuzzes at the lowest priority. The server under test must not raise the priority of its threads, so it lacks the capability to.
func (s *suite) fuzz(all []testPackage) {
	p := s.begin("fuzz", total(all))
	defer p.end()
	for _, x := range all {
		c := s.runBinary(x, "-test.parallel=2")
		if _, err := exec.LookPath("setpriv"); err == nil && os.Getuid() == 0 {
			c = s.command(low, x.dir, flat("setpriv", "--bounding-set", "-sys_nice", c.Args)...)
		}
		s.events(p, c)
	}
}

// check looks at formatting and runs static checks.
func (s *suite) check() {
	p := s.begin("check", 0)
	defer p.end()
	s.execute(p, s.command(low, "", "scripts/check"))
}

// unit runs unit tests with the race detector on SQLite.
func (s *suite) unit(all []testPackage) {
	_, elsewhere := computingTests()
	p := s.begin("unit", total(all)-total(elsewhere))
	defer p.end()
	s.events(p, s.raceTests(background, all))
}

// longest names packages whose tests are many, mostly wait, need much of the processors, or take long. They start first, so that no other
// package has to wait for them at the end.
var longest = []string{"soniq/e2e/browser", "soniq/e2e/api", "soniq/e2e/call", "soniq/e2e/crm", "soniq/e2e/crash", "soniq/e2e/contact",
	"soniq/e2e/mcp", "soniq/e2e/command", "soniq/e2e/attack", "soniq/e2e/speech", "soniq/e2e/voiceagent", "soniq/e2e/transfer",
	"soniq/e2e/flow", "soniq/e2e/queue", "soniq/e2e/trunk",
	"soniq/internal/intelligence/memory", "soniq/internal/telephony/call", "soniq/internal/telephony/number",
	"soniq/internal/messaging/smppserver"}

func longestFirst(all []testPackage) (sorted []testPackage) {
	for _, path := range longest {
		if i := slices.IndexFunc(all, func(p testPackage) bool { return p.path == path }); i >= 0 {
			sorted = append(sorted, all[i])
		}
	}
	for _, p := range all {
		if !slices.Contains(longest, p.path) {
			sorted = append(sorted, p)
		}
	}
	return sorted
}

func (s *suite) raceTests(nice int, all []testPackage, flags ...string) *exec.Cmd {
	elsewhere, _ := computingTests()
	c := s.command(nice, "", flat("scripts/race", "test", "-json", "-count=1", "-p", processors(1), "-timeout", s.limit(unitLimit),
		"-skip", elsewhere, flags, compileFlags, paths(longestFirst(all)))...)
	c.Env = without(c.Env, "SONIQ_TEST_POSTGRES")
	return c
}

// unitEngine runs the tests of the engine and of computing without the race detector, beside the real-time tests, which leave most of the
// processors idle, and therefore at the lowest priority. Recognition lowers its own priority too: beside the end-to-end tests it would not
// start within its time limit.
func (s *suite) unitEngine(all []testPackage) {
	pattern, more := computingTests()
	p := s.begin(unitEngine, total(all)+total(more))
	defer p.end()
	s.events(p, s.engineTests(low, all))
	s.events(p, s.engineTests(low, more, "-run", pattern))
}

func (s *suite) engineTests(nice int, all []testPackage, flags ...string) *exec.Cmd {
	c := s.command(nice, "", flat("go", "test", "-json", "-count=1", "-p", processors(0), "-timeout", s.limit(unitLimit), flags,
		compileFlags, paths(all))...)
	c.Env = append(without(c.Env, "SONIQ_TEST_POSTGRES"), "CGO_ENABLED=0")
	return c
}

// unitPostgres runs the unit tests that use a database on PostgreSQL. The code above the database is the same as on SQLite, so the race
// detector runs there alone.
func (s *suite) unitPostgres(all []testPackage) {
	if os.Getenv("SONIQ_TEST_POSTGRES") == "" {
		return
	}
	p := s.begin(unitPostgres, total(all))
	defer p.end()
	s.events(p, s.postgresTests(background, all))
}

func (s *suite) postgresTests(nice int, all []testPackage, flags ...string) *exec.Cmd {
	c := s.command(nice, "", flat("go", "test", "-json", "-count=1", "-p", processors(0), "-timeout", s.limit(unitLimit), flags,
		compileFlags, paths(all))...)
	c.Env = append(c.Env, "CGO_ENABLED=0", "SONIQ_TEST_DATABASE=postgres")
	return c
}

// parallel lets all tests of a package start at once. rig.Admit admits them as processors have room.
const parallel = "-test.parallel=64"

// packagesPerProcessor is the number of packages of end-to-end tests that run at once on each processor. More would not use it better, but
// their idle servers would use a sixth of it.
const packagesPerProcessor = 4

// endToEnd runs the real binary with real phones: many packages at the same time, as they mostly wait.
func (s *suite) endToEnd(all []testPackage, flags ...string) {
	expected := total(all)
	if len(flags) > 0 { // flags that choose some of the tests
		expected = 0
	}
	p := s.begin("e2e", expected)
	defer p.end()
	var running sync.WaitGroup
	free := make(chan struct{}, packagesPerProcessor*runtime.NumCPU())
	for _, x := range longestFirst(all) {
		free <- struct{}{}
		running.Go(func() {
			defer func() { <-free }()
			began, c := time.Now(), s.runBinary(x, flat(parallel, flags)...)
			s.events(p, c)
			p.addPackage(packageUse{x.path, time.Since(began), used(c)})
		})
	}
	running.Wait()
}

// packageLimit returns the time after which a package of end-to-end tests counts as hanging.
func packageLimit() time.Duration {
	if os.Getenv("SONIQ_SOAK") != "" {
		return 6 * time.Hour
	}
	return time.Hour
}

// binaryOf returns the file that build makes of a test package.
func (s *suite) binaryOf(x testPackage) string {
	if under(realtime, x.path) || under(punctual, x.path) {
		return filepath.Join(s.dir, "race", path.Base(x.path)+".test")
	}
	return filepath.Join(s.dir, path.Base(x.path)+".test")
}

// runBinary prepares a run of a compiled test package.
func (s *suite) runBinary(x testPackage, flags ...string) *exec.Cmd {
	return s.command(0, x.dir, flat(filepath.Join(s.dir, "test2json"), "-t", "-p", x.path, s.binaryOf(x), "-test.v=test2json",
		"-test.timeout="+s.limit(packageLimit()), flags)...)
}

// under reports whether a package is one of those named or below one.
func under(names []string, pkg string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return pkg == n || strings.HasPrefix(pkg, n+"/") })
}

// flat joins strings and lists of strings to one list.
func flat(parts ...any) (all []string) {
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			all = append(all, p)
		case []string:
			all = append(all, p...)
		}
	}
	return all
}

// without returns an environment without a variable.
func without(environment []string, name string) (rest []string) {
	for _, e := range environment {
		if !strings.HasPrefix(e, name+"=") {
			rest = append(rest, e)
		}
	}
	return rest
}
