package internal_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The limits of the layout: a folder can be read as a table of contents, and a file at one sitting.
const (
	maxFilesInFolder = 40
	maxLinesInFile   = 400
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
