package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecurity_NamedTestsExist fails if docs/security.md names a test that does not exist.
func TestSecurity_NamedTestsExist(t *testing.T) {
	doc, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`").FindAllSubmatch(doc, -1)
	if len(named) < 100 {
		t.Errorf("only %d tests are named", len(named))
	}
	all := testFunctions(t)
	for _, n := range named {
		if name := string(n[1]); !all[name] {
			t.Errorf("docs/security.md names %s, which does not exist", name)
		}
	}
}

// testFunctions returns the names of all tests and fuzzers.
func testFunctions(t *testing.T) map[string]bool {
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	all := map[string]bool{}
	walk(t, func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		text, err := os.ReadFile(filepath.Join("..", path))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllSubmatch(text, -1) {
			all[string(m[1])] = true
		}
	})
	return all
}
