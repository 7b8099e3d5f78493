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
)

// notExported lists tables that an erasure changes, and the reason why an export has no kind of their name.
var notExported = map[string]string{
	"call_timeline_ends": "part of call_timelines",
	"memory_vectors":     "computed from memory_items",
	"cdr_exports":        "progress of files; the erasure deletes them",
	"person_exports":     "progress of files; the erasure deletes them",
	"erasures":           "the erasure itself",
}

// erasing matches the names of functions that erase personal data, and of the functions that those call to do it.
var erasing = regexp.MustCompile(`^(Erase\w*|erase\w*|ContactErased|DeleteTranscript|deleteTexts|DeleteUtterances|DeleteCall|` +
	`deleteCall|DeleteCallNotes|DeleteContact|deleteContact|deleteTag|tombstone)$`)

// exporting matches the functions that write the same for an export.
var exporting = regexp.MustCompile(`^(Export|export)(Call|CallRecord|Contacts?|ForNumber|With|WithText|Matching|Facts|` +
	`TagsWith|ImportErrors|Audit|Synced|ed)$`)

// TestErasure_EverythingIsExported reads the statements of all functions that erase a person, and compares their tables with the kinds
// that the functions of the export name.
//
// https://github.com/rapidpro/rapidpro/issues/1277
func TestErasure_EverythingIsExported(t *testing.T) {
	t.Parallel()
	erased, kinds := map[string]string{}, map[string]bool{}
	walk(t, func(path string) {
		if strings.HasSuffix(path, "_test.go") || !strings.HasPrefix(path, "internal/") || strings.HasPrefix(path, "internal/identity/") ||
			strings.HasPrefix(path, "internal/platform/op/") {
			return // identity erases whole organisations
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		var named map[string]string
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !erasing.MatchString(fn.Name.Name) && !exporting.MatchString(fn.Name.Name) {
				continue
			}
			if named == nil {
				named = constants(t, filepath.Join("..", filepath.Dir(path)))
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if exporting.MatchString(fn.Name.Name) {
					if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
						kind, _ := strconv.Unquote(text.Value)
						kinds[kind] = true
					}
					return true
				}
				e, ok := n.(ast.Expr)
				if !ok {
					return true
				}
				text, whole := sqlText(e, named)
				for _, m := range deleting.FindAllStringSubmatch(text, -1) {
					erased[m[1]] = path + " " + fn.Name.Name
				}
				return !whole
			})
		}
	})
	if len(erased) < 25 || len(kinds) < 25 {
		t.Fatalf("only %d tables and %d texts were found: is this test looking at the right functions?", len(erased), len(kinds))
	}
	for table, by := range erased {
		if !kinds[table] && notExported[table] == "" {
			t.Errorf("%s erases %s, but no export has the kind %s", by, table, table)
		}
	}
}

var deleting = regexp.MustCompile(`(?:\bUPDATE|\bDELETE\s+FROM|\bINSERT INTO)\s+([a-z_]+)`)
