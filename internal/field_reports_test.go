package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// reportAddress matches the address of a report.
var reportAddress = regexp.MustCompile(`https://github\.com/[\w.-]+/[\w.-]+/(?:issues|pull|discussions)/\d+`)

// minReports is the least number of reports in docs/field-reports.md.
const minReports = 240

// TestFieldReports_HaveTests proves that each row of docs/field-reports.md names tests that exist, and that each report's
// address stands in a comment of a test.
func TestFieldReports_HaveTests(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/field-reports.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, commented := testFunctions(t), reportsInTests(t)
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`")
	all := map[string]bool{}
	for line := range strings.Lines(string(doc)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| report |") {
			continue
		}
		names := named.FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			t.Errorf("no test is named: %s", line)
		}
		for _, n := range names {
			if !tests[n[1]] {
				t.Errorf("%s does not exist: %s", n[1], line)
			}
		}
		for _, address := range reportAddress.FindAllString(strings.SplitN(line, "|", 3)[1], -1) {
			all[address] = true
			if !commented[address] {
				t.Errorf("%s is in no test", address)
			}
		}
	}
	if len(all) < minReports {
		t.Errorf("only %d reports", len(all))
	}
}

// reportsInTests returns the addresses of reports in the tests.
func reportsInTests(t *testing.T) map[string]bool {
	all := map[string]bool{}
	walk(t, func(path string) {
		if !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(path, "e2e/") {
			return
		}
		text, err := os.ReadFile(filepath.Join("..", path))
		if err != nil {
			t.Fatal(err)
		}
		for _, address := range reportAddress.FindAllString(string(text), -1) {
			all[address] = true
		}
	})
	return all
}
