package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLargePages_RestoredAndOnlyFromMadvise(t *testing.T) {
	file := filepath.Join(t.TempDir(), "enabled")
	read := func() string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("always [madvise] never\n")
	restore := largePages(file)
	if got := read(); got != "always" {
		t.Errorf("during the run: %q", got)
	}
	restore()
	if got := read(); got != "madvise" {
		t.Errorf("after the run: %q", got)
	}
	write("always madvise [never]\n")
	largePages(file)()
	if got := read(); got != "always madvise [never]\n" {
		t.Errorf("a setting that somebody chose became %q", got)
	}
}
