package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"soniq/internal/platform/npm"
)

const maxPackageBytes = 64 << 20

// lock is the content of package-lock.json. Packages are named by their folder, such as node_modules/react.
type lock struct {
	Packages map[string]locked
}

// locked is one package of a lock file.
type locked struct {
	Version, Integrity, License string
	Dev                         bool // only the check of types needs it
}

// install extracts the packages of a lock file into a folder. A package that was extracted before, from the same contents, is kept.
func install(ctx context.Context, lockFile, folder string, dev bool) error {
	text, err := os.ReadFile(lockFile)
	if err != nil {
		return err
	}
	var l lock
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("%s: %w", lockFile, err)
	}
	said := false
	fetching := func() {
		if !said {
			fmt.Fprintln(os.Stderr, "fetching the packages of the web console")
		}
		said = true
	}
	for _, place := range slices.Sorted(maps.Keys(l.Packages)) {
		p := l.Packages[place]
		if place == "" || p.Dev && !dev {
			continue
		}
		to := filepath.Join(folder, filepath.FromSlash(strings.TrimPrefix(place, "node_modules/")))
		if err := p.install(ctx, place, to, fetching); err != nil {
			return err
		}
	}
	return nil
}

// install extracts one package. The file .integrity is written last: a folder with it is complete.
func (p locked) install(ctx context.Context, place, to string, fetching func()) error {
	stamp := filepath.Join(to, ".integrity")
	if done, err := os.ReadFile(stamp); err == nil && string(done) == p.Integrity {
		return nil
	}
	name := place[strings.LastIndex(place, "node_modules/")+len("node_modules/"):]
	packed, err := npm.Package{Name: name, Version: p.Version}.Cached(ctx, p.Integrity, maxPackageBytes, fetching)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	err = npm.ExtractAll(bytes.NewReader(packed), func(name string, content io.Reader) error {
		return extract(filepath.Join(to, filepath.FromSlash(name)), content)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(stamp, []byte(p.Integrity), 0o644)
}

func extract(path string, content io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(content, maxPackageBytes))
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o644)
}
