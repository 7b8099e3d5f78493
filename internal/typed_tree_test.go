package internal_test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// typedTree has the types of our own packages, and the files that read each field of their structs. Other packages have no
// types, so that nothing needs to be compiled: what depends on them is unknown, and no error.
type typedTree struct {
	t        *testing.T
	files    *token.FileSet
	packages map[string]*types.Package
	reads    map[*types.Var][]string
}

func newTypedTree(t *testing.T) typedTree {
	return typedTree{t, token.NewFileSet(), map[string]*types.Package{"unsafe": types.Unsafe}, map[*types.Var][]string{}}
}

// Import implements types.Importer.
func (r typedTree) Import(name string) (*types.Package, error) {
	if p, ok := r.packages[name]; ok {
		return p, nil
	}
	dir, ours := strings.CutPrefix(name, "soniq/")
	if !ours {
		p := types.NewPackage(name, path.Base(name))
		p.MarkComplete()
		r.packages[name] = p
		return p, nil
	}
	dir = filepath.Join("..", dir)
	parsed, err := r.parse(dir)
	if err != nil {
		return nil, err
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	c := types.Config{Importer: r, Error: func(error) {}}
	p, _ := c.Check(name, r.files, parsed, info) // errors are expected: see typedTree
	r.packages[name] = p
	for _, f := range parsed {
		file, _ := filepath.Rel("..", r.files.Position(f.Package).Filename)
		readsOf(f, info, func(v *types.Var) { r.reads[v] = append(r.reads[v], filepath.ToSlash(file)) })
	}
	return p, nil
}

// parse parses the files of a folder that this system builds, without tests.
func (r typedTree) parse(dir string) (all []*ast.File, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if ok, err := build.Default.MatchFile(dir, filepath.Base(name)); err != nil || !ok || strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(r.files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}
