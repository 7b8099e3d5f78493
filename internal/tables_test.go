package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"soniq/internal/platform/db"
)

// writers lists the tables that more than one package writes, with all their writers. Every other table has one writer.
var writers = map[string][]string{
	"audit":       {"platform/audit", "platform/op", "server"}, // written with each request; deleted by age and by erasure
	"extensions":  {"identity/org", "sandbox/sandbox"},         // the reset of a sandbox deletes
	"idempotency": {"platform/op", "sandbox/sandbox"},          // the reset of a sandbox deletes
	"orgs":        {"identity/org", "identity/partner"},        // partners create and close child organisations
}

var writing = regexp.MustCompile(`\b(?:INSERT INTO|UPDATE|DELETE FROM)\s+(\w+)`)

// TestTables_OneWriter reads every SQL text and reports tables that several packages write, and tables that none writes.
func TestTables_OneWriter(t *testing.T) {
	found := map[string][]string{}
	for table := range tables(t) {
		found[table] = nil
	}
	walk(t, func(path string) {
		if strings.HasSuffix(path, "_test.go") || !strings.HasPrefix(path, "internal/") || strings.HasSuffix(filepath.Dir(path), "test") {
			return // packages such as visibilitytest help tests
		}
		by := siteOf(filepath.Dir(path)).String()
		for _, text := range texts(t, path) {
			for _, m := range writing.FindAllStringSubmatch(text, -1) {
				if all, ok := found[m[1]]; ok && !slices.Contains(all, by) {
					found[m[1]] = append(all, by)
				}
			}
		}
	})
	for table, by := range found {
		slices.Sort(by)
		want, several := writers[table]
		switch {
		case several && !slices.Equal(by, want):
			t.Errorf("%s is written by %v, the list says %v", table, by, want)
		case !several && len(by) != 1:
			t.Errorf("%s is written by %v: one package must own it", table, by)
		}
	}
}

// tables returns the tables that exist after all migrations.
func tables(t *testing.T) map[string]bool {
	t.Helper()
	all, err := db.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	change := regexp.MustCompile(`(?i)^\s*(?:(CREATE) TABLE (?:IF NOT EXISTS )?(\w+)|(DROP) TABLE (?:IF EXISTS )?(\w+)|ALTER TABLE (\w+) RENAME TO (\w+))`)
	for _, m := range all {
		for _, s := range db.Split(m.SQL) {
			switch x := change.FindStringSubmatch(s); {
			case x == nil:
			case x[1] != "":
				names[x[2]] = true
			case x[3] != "":
				delete(names, x[4])
			default:
				delete(names, x[5])
				names[x[6]] = true
			}
		}
	}
	if len(names) < 80 {
		t.Fatalf("only %d tables were found in the migrations", len(names))
	}
	return names
}

// texts returns the string literals of a file.
func texts(t *testing.T, path string) (all []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", path), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			text, _ := strconv.Unquote(l.Value)
			all = append(all, text)
		}
		return true
	})
	return all
}
