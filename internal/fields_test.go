package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// maxFunctionFields limits the exported fields of a function type. A dependency is an interface in the Config of a constructor, and what a
// package announces goes to observers (docs/decisions/0031-observers-and-dependencies.md).
const maxFunctionFields = 45

// TestFields_FewFunctions counts the exported struct fields of a function type.
func TestFields_FewFunctions(t *testing.T) {
	var found []string
	inspectSources(t, func(path string, n ast.Node) bool {
		s, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		for _, field := range s.Fields.List {
			if _, ok := field.Type.(*ast.FuncType); !ok {
				continue
			}
			for _, name := range field.Names {
				if name.IsExported() {
					found = append(found, path+" "+name.Name)
				}
			}
		}
		return true
	})
	if len(found) < 10 || len(found) > maxFunctionFields {
		t.Errorf("%d exported fields are functions, want 10 to %d:\n%s", len(found), maxFunctionFields, strings.Join(found, "\n"))
	}
}

// inspectSources walks the syntax tree of every Go file in internal that is no test, as ast.Inspect does.
func inspectSources(t *testing.T, visit func(path string, n ast.Node) bool) {
	t.Helper()
	walk(t, func(path string) {
		if strings.HasSuffix(path, "_test.go") || !strings.HasPrefix(path, "internal/") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool { return visit(path, n) })
	})
}
