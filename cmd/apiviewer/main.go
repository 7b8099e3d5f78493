// Command apiviewer fetches the viewer of the API reference into internal/api/rest/docs/viewer, where the build embeds it.
//
//	apiviewer [--from package.tgz]
//
// The lock file viewer-lock.json pins the npm package by version and SHA-512. A package that was fetched once is kept in the user's cache
// folder. npm_config_registry names another npm registry.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"soniq/internal/platform/npm"
)

const (
	docs            = "internal/api/rest/docs"
	maxPackageBytes = 16 << 20 // of the package, and of each file in it
	timeout         = time.Minute
)

// lock is the content of viewer-lock.json. Files maps names in the package to names in the viewer's folder; those that end in .gz are
// compressed.
type lock struct {
	Name, Version, Integrity string
	Files                    map[string]string
}

func main() {
	from := flag.String("from", "", "read the package from this file, made by npm pack")
	flag.Parse()
	if err := run(*from); err != nil {
		fmt.Fprintln(os.Stderr, "apiviewer:", err)
		os.Exit(1)
	}
}

// run does nothing if the viewer's folder was written from the same lock file.
func run(from string) error {
	text, err := os.ReadFile(filepath.Join(docs, "viewer-lock.json"))
	if err != nil {
		return err
	}
	var l lock
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("viewer-lock.json: %w", err)
	}
	folder := filepath.Join(docs, "viewer")
	if done, err := os.ReadFile(filepath.Join(folder, "integrity")); err == nil && string(done) == l.Integrity {
		return nil
	}
	packed, err := l.read(from)
	if err != nil {
		return err
	}
	return l.install(packed, folder)
}

// read returns the package from a file, from the cache or from the registry, after its hash was compared.
func (l lock) read(from string) ([]byte, error) {
	if from != "" {
		packed, err := os.ReadFile(from)
		return packed, errors.Join(err, l.of().Verify(packed, l.Integrity))
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return l.of().Cached(ctx, l.Integrity, maxPackageBytes, func() {
		fmt.Fprintf(os.Stderr, "fetching the viewer of the API reference (%s %s)\n", l.Name, l.Version)
	})
}

// of returns the package of the lock file.
func (l lock) of() npm.Package { return npm.Package{Name: l.Name, Version: l.Version} }

// install writes the files into a folder, with the hash as the last one. A file that the package lacks is an error.
func (l lock) install(packed []byte, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	err := npm.Extract(bytes.NewReader(packed), slices.Collect(maps.Keys(l.Files)), func(from string, file io.Reader) error {
		content, err := io.ReadAll(io.LimitReader(file, maxPackageBytes))
		if err != nil {
			return err
		}
		name := l.Files[from]
		if strings.HasSuffix(name, ".gz") {
			content = compress(content)
		}
		return npm.WriteFile(filepath.Join(folder, name), content)
	})
	if err != nil {
		return err
	}
	return npm.WriteFile(filepath.Join(folder, "integrity"), []byte(l.Integrity))
}

func compress(content []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(content)                               // a buffer accepts everything
	_ = w.Close()
	return b.Bytes()
}
