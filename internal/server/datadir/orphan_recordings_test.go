package datadir

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestRemoveOrphanRecordings_ShortOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := time.Now()
	for name, f := range map[string]struct {
		size int
		at   time.Time
		kept bool
	}{
		"org/2026/01/short.wav.part":   {1000, start.Add(-time.Minute), false},
		"org/2026/01/long.wav.part":    {100_000, start.Add(-time.Minute), true},
		"org/2026/01/new.wav.part":     {1000, start.Add(time.Second), true},
		"org/2026/01/going-2.wav.part": {1000, start.Add(-time.Minute), true},
		"org/2026/01/whole.wav":        {1000, start.Add(-time.Minute), true},
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, f.size), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, f.at, f.at); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if _, err := os.Stat(path); (err == nil) != f.kept {
				t.Errorf("%s: kept is %v, want %v", name, err == nil, f.kept)
			}
		}()
	}
	if err := RemoveOrphanRecordings(dir, start, func(id string) bool { return id == "going" }, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
}
