package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestComputing_TestsExistOnce checks that each test of computing is in its package, and that no other package has one of that name: the
// part unit leaves out tests by their names.
func TestComputing_TestsExistOnce(t *testing.T) {
	found := map[string][]string{}
	for _, root := range []string{"../../cmd", "../../internal"} {
		err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for line := range strings.Lines(string(text)) {
				if name, ok := strings.CutPrefix(line, "func Test"); ok {
					name, _, _ = strings.Cut("Test"+name, "(")
					found[name] = append(found[name], "soniq"+strings.TrimPrefix(filepath.Dir(path), "../.."))
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, names := range computing {
		for _, name := range names {
			if !slices.Equal(found[name], []string{path}) {
				t.Errorf("%s is in %v, want %s", name, found[name], path)
			}
		}
	}
}

// TestSequential_NoGoroutines checks that no package of sequential starts a goroutine: the race detector would have to watch it.
func TestSequential_NoGoroutines(t *testing.T) {
	starts := regexp.MustCompile(`(?m)^\s*go |\.Go\(`)
	for _, path := range sequential {
		files, err := filepath.Glob("../../" + strings.TrimPrefix(path, "soniq/") + "/*.go")
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no files: %v", path, err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if found := starts.Find(text); found != nil {
				t.Errorf("%s starts a goroutine: %s", name, found)
			}
		}
	}
}
