package main

import (
	"os"
	"path/filepath"
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
