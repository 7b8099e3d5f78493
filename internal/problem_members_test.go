package internal_test

import (
	"encoding/json"
	"go/ast"
	"os"
	"strconv"
	"testing"
)

// TestProblems_MembersDescribed proves that the description of the API names each member that the code adds to a problem by
// the field Extra of an error.
func TestProblems_MembersDescribed(t *testing.T) {
	described := problemMembers(t)
	found := 0
	inspectSources(t, func(path string, n ast.Node) bool {
		for _, name := range extraMembers(n) {
			if found++; described[name] == nil {
				t.Errorf("%s adds the member %s to a problem, and the description does not name it: see problemMembers of "+
					"internal/platform/op", path, name)
			}
		}
		return true
	})
	if found < 20 {
		t.Errorf("only %d members were found", found)
	}
}

// extraMembers returns the keys of a map that a node gives to a field Extra.
func extraMembers(n ast.Node) (names []string) {
	var given ast.Expr
	switch n := n.(type) {
	case *ast.CompositeLit:
		given = extraOf(n)
	case *ast.AssignStmt:
		if to, ok := n.Lhs[0].(*ast.SelectorExpr); ok && to.Sel.Name == "Extra" {
			given = n.Rhs[0]
		}
	}
	values, ok := given.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	for _, e := range values.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			if text, ok := pair.Key.(*ast.BasicLit); ok {
				name, _ := strconv.Unquote(text.Value)
				names = append(names, name)
			}
		}
	}
	return names
}

// extraOf returns the value of the field Extra of an error; nil if there is none.
func extraOf(n *ast.CompositeLit) ast.Expr {
	if of, ok := n.Type.(*ast.SelectorExpr); ok && of.Sel.Name == "TokenInfo" { // of an access token
		return nil
	}
	for _, e := range n.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok && key.Name == "Extra" {
				return pair.Value
			}
		}
	}
	return nil
}

// problemMembers returns the described members of a problem.
func problemMembers(t *testing.T) map[string]any {
	t.Helper()
	b, err := os.ReadFile("api/rest/testdata/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Components struct {
			Schemas struct {
				Problem struct{ Properties map[string]any }
			}
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return d.Components.Schemas.Problem.Properties
}
