package flow

import (
	"errors"
	"fmt"
	"reflect"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
)

// maxRegexpSteps limits the instructions of a compiled regular expression.
const maxRegexpSteps = 1000

// reserved begins the names of the methods that guards inserts.
const reserved = "Guard"

// restrictions refuses code whose cost cannot be counted: loops, ranges, and large regular expressions.
type restrictions struct{ err error }

// check parses an expression and returns an error if it uses a function or operator that is not allowed. An expression that
// does not parse is an error too, and is not given to the compiler.
func (b *restrictions) check(text string) error {
	tree, err := parser.Parse(text)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return errors.New(first)
	}
	ast.Walk(&tree.Node, b)
	return b.err
}

func (b *restrictions) refuse(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Visit implements ast.Visitor.
func (b *restrictions) Visit(n *ast.Node) {
	switch x := (*n).(type) {
	case *ast.PredicateNode:
		b.refuse(errors.New("loops such as all(), filter() and map() are not allowed"))
	case *ast.BinaryNode:
		b.checkOperator(x)
	case *ast.IdentifierNode:
		if x.Value == "$env" || strings.HasPrefix(x.Value, reserved) {
			b.refuse(fmt.Errorf("unknown name %s", x.Value))
		}
	case *ast.VariableDeclaratorNode:
		if strings.HasPrefix(x.Name, reserved) {
			b.refuse(fmt.Errorf("a name must not begin with %s: %s", reserved, x.Name))
		}
	}
}

func (b *restrictions) checkOperator(x *ast.BinaryNode) {
	switch x.Operator {
	case "..":
		b.refuse(errors.New("ranges are not allowed"))
	case "matches":
		if pattern, ok := x.Right.(*ast.StringNode); ok {
			if _, err := regexpSteps(pattern.Value); err != nil {
				b.refuse(err)
			}
		}
	}
}

// regexpSteps returns about how many instructions a regular expression has. It refuses one with too many, before it is compiled.
func regexpSteps(pattern string) (int, error) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	n := stepsOf(tree)
	if n > maxRegexpSteps {
		return 0, fmt.Errorf("a regular expression has at most %d steps, repeated parts counted as often as they repeat", maxRegexpSteps)
	}
	return n, nil
}

// stepsOf counts the instructions of an expression, at most some more than maxRegexpSteps.
func stepsOf(r *syntax.Regexp) int {
	n := 1 + len(r.Rune)
	for _, sub := range r.Sub {
		if n = n + stepsOf(sub); n > maxRegexpSteps {
			break
		}
	}
	if r.Op == syntax.OpRepeat {
		n *= max(r.Min, r.Max, 1)
	}
	return min(n, 2*maxRegexpSteps)
}

// guards puts the counting methods of evaluation around every part whose value can be large. It runs after restrictions.
type guards struct{}

// uncounted lists the built-in functions whose cost does not depend on the size of their arguments.
var uncounted = []string{"len", "type", "first", "last", "get", "int", "float", "abs", "ceil", "floor", "round"}

// Visit implements ast.Visitor. The parts of a node were visited before it.
func (guards) Visit(n *ast.Node) {
	switch x := (*n).(type) {
	case *ast.BinaryNode:
		guardOperator(n, x)
	case *ast.BuiltinNode:
		guardBuiltin(n, x)
	case *ast.CallNode, *ast.MapNode:
		guard(n)
	case *ast.ArrayNode:
		if !slices.ContainsFunc(x.Nodes, func(e ast.Node) bool { return !isLiteral(e) }) {
			return // its size is that of the source
		}
		guard(n)
	}
}

func guardOperator(n *ast.Node, x *ast.BinaryNode) {
	switch x.Operator {
	case "+":
		guard(n)
	case "matches":
		guardRegexp(n, x)
	case "in", "contains", "startsWith", "endsWith", "==", "!=":
		guard(&x.Left)
		guard(&x.Right)
	}
}

func guardRegexp(n *ast.Node, x *ast.BinaryNode) {
	pattern, ok := x.Right.(*ast.StringNode)
	if !ok {
		replaceNode(n, "GuardMatches", x.Left, x.Right)
		return
	}
	steps, err := regexpSteps(pattern.Value)
	if err != nil { // does not happen: restrictions refused it
		steps = maxRegexpSteps
	}
	if kind := kindOf(x.Left); kind != reflect.String && kind != reflect.Interface {
		return // the compiler refuses it
	}
	replaceNode(&x.Left, "GuardSubject", x.Left, &ast.IntegerNode{Value: steps})
}

func guardBuiltin(n *ast.Node, x *ast.BuiltinNode) {
	switch {
	case slices.Contains(uncounted, x.Name):
		return
	case x.Name == "replace" && len(x.Arguments) == 3:
		replaceNode(n, "GuardReplace", append(x.Arguments, &ast.IntegerNode{Value: -1})...)
		return
	case x.Name == "replace" && len(x.Arguments) == 4:
		replaceNode(n, "GuardReplace", x.Arguments...)
		return
	case x.Name == "join" && len(x.Arguments) == 1:
		replaceNode(n, "GuardJoin", x.Arguments[0], &ast.StringNode{})
		return
	case x.Name == "join" && len(x.Arguments) == 2:
		replaceNode(n, "GuardJoin", x.Arguments...)
		return
	case (x.Name == "sort" || x.Name == "uniq") && len(x.Arguments) > 0:
		replaceNode(&x.Arguments[0], "GuardFew", x.Arguments[0])
	default:
		for i := range x.Arguments {
			guard(&x.Arguments[i])
		}
	}
	guard(n)
}

// guard has the value of a node counted, unless its type has a fixed size.
func guard(n *ast.Node) {
	if isLiteral(*n) || isGuarded(*n) {
		return
	}
	switch kind := kindOf(*n); kind {
	case reflect.String:
		replaceNode(n, "GuardText", *n)
	case reflect.Interface, reflect.Slice, reflect.Array, reflect.Map:
		replaceNode(n, "GuardValue", *n)
	}
}

func kindOf(n ast.Node) reflect.Kind {
	if t := n.Type(); t != nil {
		return t.Kind()
	}
	return reflect.Interface
}

func isLiteral(n ast.Node) bool {
	switch n.(type) {
	case *ast.NilNode, *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.StringNode, *ast.BytesNode:
		return true
	}
	return false
}

func isGuarded(n ast.Node) bool {
	call, ok := n.(*ast.CallNode)
	if !ok {
		return false
	}
	name, ok := call.Callee.(*ast.IdentifierNode)
	return ok && strings.HasPrefix(name.Value, reserved)
}

// replaceNode replaces a node by the call of a method of evaluation.
func replaceNode(n *ast.Node, function string, arguments ...ast.Node) {
	at := (*n).Location()
	for _, a := range arguments {
		if a.Location().From == 0 && a.Location().To == 0 {
			a.SetLocation(at)
		}
	}
	call := &ast.CallNode{Callee: &ast.IdentifierNode{Value: function}, Arguments: arguments}
	call.SetLocation(at)
	call.Callee.SetLocation(at)
	call.SetType(reflect.TypeFor[any]())
	if function == "GuardText" || function == "GuardReplace" || function == "GuardJoin" {
		call.SetType(reflect.TypeFor[string]())
	}
	if function == "GuardMatches" {
		call.SetType(reflect.TypeFor[bool]())
	}
	*n = call
}
