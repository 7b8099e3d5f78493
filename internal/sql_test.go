package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"soniq/internal/platform/db"
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
	of := map[string]map[string]string{} // the constants of each folder, read once
	walk(t, func(path string) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "e2e/") {
			return
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, filepath.Join("..", path), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		excused := excuses(files, f)
		folder := filepath.Dir(path)
		if of[folder] == nil {
			of[folder] = constants(t, filepath.Join("..", folder))
		}
		named := of[folder]
		ast.Inspect(f, func(n ast.Node) bool {
			text, whole := sqlText(n, named)
			if !statement.MatchString(text) {
				return !whole
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
			return !whole
		})
	})
	if checked < 20 {
		t.Errorf("only %d statements checked: is this test looking at the right folder?", checked)
	}
}

// sqlText is the text of an expression that joins texts, with the constants of its package filled in; what is not known is left
// out. Whole says that nothing inside needs to be looked at again.
func sqlText(n ast.Node, named map[string]string) (text string, whole bool) {
	switch e := n.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ = strconv.Unquote(e.Value)
		}
		return text, true
	case *ast.Ident:
		return named[e.Name], true
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			left, _ := sqlText(e.X, named)
			right, _ := sqlText(e.Y, named)
			return left + right, statement.MatchString(left + right)
		}
	}
	return "", false
}

// constants are the texts with a name in a package.
func constants(t *testing.T, folder string) map[string]string {
	t.Helper()
	named := map[string]string{}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				for i := range v.Values {
					if text, ok := sqlText(v.Values[i], nil); ok && !statement.MatchString(text) {
						named[v.Names[i].Name] = text
					}
				}
			}
		}
	}
	return named
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
