package main

import (
	"path/filepath"
	"slices"
	"strings"
)

// quickCalls names the end-to-end tests of `make quick`: a call with each codec.
const (
	quickPackage = "soniq/e2e/call"
	quickCalls   = "^TestCodec_"
)

// quick runs checks, the unit tests of changed packages on SQLite, and a call with each codec: less than two minutes.
func (s *suite) quick() {
	progress := s.follow()
	defer progress()
	all, err := s.list()
	if err != nil {
		s.begin("list", 0).fail(err.Error())
		return
	}
	changed, err := s.changed(slices.Concat(all.unit, all.engine))
	if err != nil {
		s.begin("list", 0).fail(err.Error())
		return
	}
	calls := slices.DeleteFunc(slices.Clone(all.e2e), func(p testPackage) bool { return p.path != quickPackage })
	all = packages{e2e: calls}
	if !s.buildServer(all) || !s.buildTests(all) {
		return
	}
	s.both(func() { s.endToEnd(calls, "-test.run="+quickCalls) }, func() {
		s.check()
		if len(changed) > 0 {
			s.unitQuick(changed)
		}
	})
	s.repeat()
}

// unitQuick runs unit tests without the race detector on SQLite. Results of unchanged packages come from the cache.
func (s *suite) unitQuick(all []testPackage) {
	p := s.begin("unit", total(all))
	defer p.end()
	c := s.command(low, "", flat("go", "test", "-json", "-p", processors(0), "-timeout", s.limit(unitLimit), compileFlags, paths(all))...)
	c.Env = append(without(c.Env, "SONIQ_TEST_POSTGRES"), "CGO_ENABLED=0")
	s.events(p, c)
}

// changed returns the packages with a file that differs from the branch the work started from. These are uncommitted
// changes and the commits that the upstream branch lacks, or the last commit if there is no upstream branch.
func (s *suite) changed(all []testPackage) (some []testPackage, err error) {
	base := "HEAD~1"
	if s.command(0, "", "git", "rev-parse", "--quiet", "--verify", "@{upstream}").Run() == nil {
		base = "@{upstream}"
	}
	committed, err := s.command(0, "", "git", "diff", "--name-only", base).Output()
	if err != nil {
		return nil, err
	}
	fresh, err := s.command(0, "", "git", "ls-files", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, err
	}
	dirs := map[string]bool{}
	for name := range strings.Lines(string(committed) + string(fresh)) {
		if strings.HasSuffix(strings.TrimSpace(name), ".go") {
			dirs["soniq/"+filepath.Dir(name)] = true
		}
	}
	for _, p := range all {
		if dirs[p.path] {
			some = append(some, p)
		}
	}
	return some, nil
}
