package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"soniq/db"
)

// tenantTables are the tables with an organisation in them, read from the migrations.
func tenantTables(t *testing.T) map[string]bool {
	t.Helper()
	all, err := db.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]bool{}
	create := regexp.MustCompile(`(?is)CREATE TABLE (\w+)\s*\((.*)\)`)
	for _, m := range all {
		for _, s := range db.Split(m.SQL) {
			if found := create.FindStringSubmatch(s); found != nil && strings.Contains(found[2], "org_id") {
				tables[found[1]] = true
			}
		}
	}
	return tables
}

var (
	statement = regexp.MustCompile(`(?is)^\s*(SELECT|UPDATE|DELETE|INSERT|WITH)\s`)
	table     = regexp.MustCompile(`(?i)\b(?:FROM|UPDATE|INTO|JOIN)\s+(\w+)`)
)

// TestEveryStatementNamesTheOrganisation reads every SQL text in the tree. A statement on a tenant's table without
// org_id needs a comment "tenant: why" on one of the lines before it.
func TestEveryStatementNamesTheOrganisation(t *testing.T) {
	tables := tenantTables(t)
	if !tables["calls"] || !tables["events"] {
		t.Fatal("tenant tables were not found in the migrations")
	}
	checked := 0
	walk(t, func(path string) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "e2e/") {
			return
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		excused := excuses(files, f)
		ast.Inspect(f, func(n ast.Node) bool {
			text, ok := sqlText(n)
			if !ok {
				return true
			}
			line := files.Position(n.Pos()).Line
			for _, m := range table.FindAllStringSubmatch(text, -1) {
				if !tables[strings.ToLower(m[1])] {
					continue
				}
				checked++
				if !strings.Contains(text, "org_id") && !excused(line) {
					t.Errorf("%s:%d: a statement on %s names no organisation", path, line, m[1])
				}
			}
			return true
		})
	})
	if checked < 20 {
		t.Errorf("only %d statements checked: is this test looking at the right folder?", checked)
	}
}

func sqlText(n ast.Node) (string, bool) {
	lit, ok := n.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil && statement.MatchString(text)
}

// excuses knows the lines that a comment "tenant: why" stands before.
func excuses(files *token.FileSet, f *ast.File) func(line int) bool {
	lines := map[int]bool{}
	for _, group := range f.Comments {
		for _, c := range group.List {
			if strings.Contains(c.Text, "tenant:") {
				lines[files.Position(c.Pos()).Line] = true
			}
		}
	}
	return func(line int) bool {
		for back := 0; back <= 3; back++ {
			if lines[line-back] {
				return true
			}
		}
		return false
	}
}
