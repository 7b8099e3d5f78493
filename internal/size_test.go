package internal_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The limits of the layout: a folder can be read as a table of contents, and a file at one sitting.
const (
	maxFilesInFolder   = 40
	maxLinesInFile     = 400
	maxLinesInFunction = 80
)

// TestSize_FoldersAndFiles counts the files of each folder, without tests, and the lines of each file.
func TestSize_FoldersAndFiles(t *testing.T) {
	t.Parallel()
	files := map[string]int{}
	walk(t, func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			files[filepath.Dir(path)]++
		}
		text, err := os.ReadFile(filepath.Join("..", path))
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte("\n")); n > maxLinesInFile {
			t.Errorf("%s has %d lines; at most %d", path, n, maxLinesInFile)
		}
	})
	if len(files) < 50 {
		t.Errorf("only %d folders were found: does the test read the right folder?", len(files))
	}
	for folder, n := range files {
		if n > maxFilesInFolder {
			t.Errorf("%s has %d files that are not tests; at most %d", folder, n, maxFilesInFolder)
		}
	}
}

// TestSize_Functions counts the lines of each function of the programs. Tests may list their steps.
func TestSize_Functions(t *testing.T) {
	t.Parallel()
	var n int
	walk(t, func(path string) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "e2e/") {
			return
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, filepath.Join("..", path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				n++
				if lines := files.Position(d.End()).Line - files.Position(d.Pos()).Line + 1; lines > maxLinesInFunction {
					t.Errorf("%s: %s has %d lines; at most %d", path, d.Name.Name, lines, maxLinesInFunction)
				}
			}
		}
	})
	if n < 1000 {
		t.Errorf("only %d functions were found: does the test read the right folder?", n)
	}
}
