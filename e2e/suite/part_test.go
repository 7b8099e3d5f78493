package main

import (
	"slices"
	"strings"
	"testing"
)

// fed feeds the lines of a `go test -json` run to a part.
func fed(t *testing.T, lines string) *part {
	t.Helper()
	p := newPart("unit")
	if err := readEvents(strings.NewReader(lines), p.take); err != nil {
		t.Fatal(err)
	}
	return p
}

const twoTests = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA/one","Output":"wrong\n"}
{"Action":"fail","Package":"p","Test":"TestA/one","Elapsed":1}
{"Action":"fail","Package":"p","Test":"TestA","Elapsed":1}
{"Action":"pass","Package":"p","Test":"TestB","Elapsed":2}
{"Action":"fail","Package":"p","Elapsed":3}
`

func TestPart_FailedTestsAreBlamedBeforePackages(t *testing.T) {
	p := fed(t, twoTests)
	if got := p.failed(); !slices.Equal(got, []testName{{"p", "TestA"}, {"p", "TestA/one"}}) {
		t.Errorf("failed: %v", got)
	}
	if got := p.output(testName{"p", "TestA"}); got != "wrong\n" {
		t.Errorf("output of the failed test: %q", got)
	}
	if passed, failed, skipped := p.count(); passed != 1 || failed != 2 || skipped != 0 {
		t.Errorf("%d passed, %d failed, %d skipped", passed, failed, skipped)
	}
}

func TestPart_PackageThatFailsWithoutATestIsBlamed(t *testing.T) {
	p := fed(t, `{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"fail","Package":"p"}
`)
	if got := p.failed(); !slices.Equal(got, []testName{{"p", ""}}) {
		t.Errorf("failed: %v", got)
	}
}

func TestPart_TestThatNeverEndedFailed(t *testing.T) {
	p := fed(t, `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"panic: timed out\n"}
`)
	if got := p.failed(); !slices.Equal(got, []testName{{"p", "TestA"}}) {
		t.Errorf("failed: %v", got)
	}
}

func TestPart_ForgottenTestMayPassAgain(t *testing.T) {
	p := fed(t, twoTests)
	p.forget(testName{"p", "TestA"})
	if got := p.failed(); len(got) != 0 {
		t.Errorf("failed after it was forgotten: %v", got)
	}
	p.take(testEvent{Action: "pass", Package: "p", Test: "TestA"})
	if passed, failed, _ := p.count(); passed != 2 || failed != 0 {
		t.Errorf("%d passed, %d failed", passed, failed)
	}
}

func TestPart_TestOfAnotherPartIsNotCounted(t *testing.T) {
	p := fed(t, `{"Action":"output","Package":"p","Test":"TestA","Output":"runs with SQLite, in another part of the suite\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"skip","Package":"p","Test":"TestB"}
`)
	if _, _, skipped := p.count(); skipped != 1 {
		t.Errorf("%d skipped, want TestB alone", skipped)
	}
}

func TestReadEvents_CompilerErrorsAreOutput(t *testing.T) {
	p := fed(t, "# soniq/x\nx.go:1: syntax error\n")
	if got := p.output(testName{}); !strings.Contains(got, "syntax error") {
		t.Errorf("output of no package: %q", got)
	}
}

func TestPart_StoppedTestsHaveNotFailed(t *testing.T) {
	p := newPart("unit")
	for _, e := range []testEvent{
		{Package: "a", Test: "TestFails", Action: "output", Output: "wrong\n"}, {Package: "a", Test: "TestFails", Action: "fail"},
		{Package: "a", Test: "TestRuns", Action: "output", Output: "begins\n"},
	} {
		p.take(e)
	}
	p.forgetUnfinished()
	if got := p.failed(); len(got) != 1 || got[0].Test != "TestFails" {
		t.Errorf("failed: %v", got)
	}
}
