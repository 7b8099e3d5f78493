package rig

import (
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// Build builds the binary once per test process, with the race detector unless SONIQ_E2E_BINARY names a ready one.
var Build = sync.OnceValues(func() (string, error) {
	if ready := os.Getenv("SONIQ_E2E_BINARY"); ready != "" {
		return ready, nil
	}
	dir, err := os.MkdirTemp("", "soniq-e2e-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "soniq")
	build := exec.Command(filepath.Join(Root(), "scripts", "race"), "build", "-o", path, "./cmd/soniq")
	build.Dir = Root()
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

// CommandBinary returns the binary for commands and for programs beside a server. They start often, end at once and run little code of
// their own, so the race detector watches them with SONIQ_SOAK only.
func CommandBinary() (string, error) {
	if os.Getenv("SONIQ_SOAK") != "" {
		return Build()
	}
	return plain()
}

// plain returns the binary without the race detector if the suite built one, else the one of Build.
func plain() (string, error) {
	if path := os.Getenv("SONIQ_E2E_PLAIN"); path != "" {
		return path, nil
	}
	return Build()
}

// binary returns the program that serves.
func (s *Server) binary() (string, error) {
	switch {
	case s.options.Binary != "":
		return s.options.Binary, nil
	case s.options.raced:
		return Build()
	default:
		return plain()
	}
}

// raced reports whether the server of a test runs with the race detector. The name of the test selects every third one on SQLite: the
// detector doubles the processor time of a server. With SONIQ_SOAK it watches all of them. On PostgreSQL the same Go code runs without it.
func raced(test, database string) bool {
	if database != "" {
		return false
	}
	name, _, _ := strings.Cut(test, "/")
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return os.Getenv("SONIQ_SOAK") != "" || h.Sum32()>>8%3 == 0
}
