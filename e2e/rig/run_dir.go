package rig

import (
	"os"
	"sync"
	"testing"
)

// sharedDir is a temporary folder that is made at its first use.
type sharedDir struct {
	mu   sync.Mutex
	path string
}

var runDir sharedDir

// RunDir returns a folder for files that all tests of this process read. Main removes it.
func RunDir(t testing.TB) string {
	t.Helper()
	runDir.mu.Lock()
	defer runDir.mu.Unlock()
	if runDir.path == "" {
		path, err := os.MkdirTemp("", "soniq-e2e-shared-")
		if err != nil {
			t.Fatal(err)
		}
		runDir.path = path
	}
	return runDir.path
}

func (d *sharedDir) remove() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.path != "" {
		_ = os.RemoveAll(d.path)
	}
}
