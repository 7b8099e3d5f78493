package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestBinary_FoundFromOtherFolders proves that a relative path to the binary works from any folder, and that other files are refused.
func TestBinary_FoundFromOtherFolders(t *testing.T) {
	goTool, err := exec.LookPath("go") // a program that answers "version", as soniq does
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(goTool))
	b := &bench{binary: "./go"}
	if err := b.locate(); err != nil {
		t.Fatal(err)
	}
	elsewhere := exec.Command(b.binary, "version")
	elsewhere.Dir = t.TempDir()
	if out, err := elsewhere.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(elsewhere.Dir, "none"), []byte("not a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(elsewhere.Dir, "none"), "./nowhere"} {
		if (&bench{binary: path}).locate() == nil {
			t.Errorf("%s passes for a binary", path)
		}
	}
}
