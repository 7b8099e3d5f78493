package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestFields_NoEmbeddedConfig finds structs that embed a Config or Deps. An embedded one makes each dependency a field of the component:
// other packages read and replace it, and a reader cannot tell it from the state of the component. Name the field cfg.
func TestFields_NoEmbeddedConfig(t *testing.T) {
	var structs int
	walk(t, func(path string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			structs++
			for _, field := range s.Fields.List {
				if name := typeName(field.Type); len(field.Names) == 0 && (strings.HasSuffix(name, "Config") || name == "Deps") {
					t.Errorf("%s: a struct embeds %s; give the field a name", path, name)
				}
			}
			return true
		})
	})
	if structs < 1000 {
		t.Errorf("only %d structs were found: does the test read the right folder?", structs)
	}
}

// typeName returns the name of a type, without its package and without a pointer.
func typeName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.Ident:
		return x.Name
	}
	return ""
}
