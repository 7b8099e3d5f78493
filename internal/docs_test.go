package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docPath matches a path in backticks.
var docPath = regexp.MustCompile("`([a-z][a-z0-9_/*.]*/[a-z0-9_/*.]+)`")

// The places that the documents for newcomers name exist: the last column of tables in the glossary and under "Where to
// look".
func TestDocs_NamedFilesExist(t *testing.T) {
	t.Parallel()
	checked := 0
	for doc, heading := range map[string]string{"glossary.md": "# Glossary", "architecture.md": "## Where to look"} {
		b, err := os.ReadFile(filepath.Join("..", "docs", doc))
		if err != nil {
			t.Fatal(err)
		}
		_, text, found := strings.Cut(string(b), heading+"\n")
		if !found {
			t.Fatalf("%s has no heading %q", doc, heading)
		}
		text, _, _ = strings.Cut(text, "\n## ")
		for line := range strings.Lines(text) {
			cells := strings.Split(strings.TrimSuffix(strings.TrimSpace(line), "|"), "|")
			for _, m := range docPath.FindAllStringSubmatch(cells[len(cells)-1], -1) {
				checked++
				here, _ := filepath.Glob(m[1])
				above, _ := filepath.Glob(filepath.Join("..", m[1]))
				if len(here)+len(above) == 0 {
					t.Errorf("%s names %s, which does not exist", doc, m[1])
				}
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d paths were found", checked)
	}
}
