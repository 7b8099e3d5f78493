// Command apiviewer fetches the viewer of the API reference into internal/api/rest/docs/viewer, where the build embeds it.
//
//	apiviewer [--from package.tgz]
//
// The lock file viewer-lock.json pins the npm package by version and SHA-512. A package that was fetched once is kept in the user's cache
// folder. npm_config_registry names another npm registry.
package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
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

// read returns the package from a file, from the cache or from the registry, after it has compared its hash.
func (l lock) read(from string) ([]byte, error) {
	if from != "" {
		packed, err := os.ReadFile(from)
		return packed, errors.Join(err, l.verify(packed))
	}
	cached := ""
	if dir, err := os.UserCacheDir(); err == nil {
		cached = filepath.Join(dir, "soniq", l.of().FileName())
		if packed, err := os.ReadFile(cached); err == nil && l.verify(packed) == nil {
			return packed, nil
		}
	}
	packed, err := l.fetch()
	if err != nil {
		return nil, err
	}
	if err := l.verify(packed); err != nil {
		return nil, err
	}
	if cached != "" && os.MkdirAll(filepath.Dir(cached), 0o755) == nil {
		_ = writeFile(cached, packed) // without the cache the next build fetches it again
	}
	return packed, nil
}

// of returns the package of the lock file.
func (l lock) of() npm.Package { return npm.Package{Name: l.Name, Version: l.Version} }

func (l lock) fetch() ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	fmt.Fprintf(os.Stderr, "fetching the viewer of the API reference (%s %s)\n", l.Name, l.Version)
	from := cmp.Or(os.Getenv("npm_config_registry"), os.Getenv("NPM_CONFIG_REGISTRY"), npm.Registry)
	packed, _, err := l.of().Fetch(ctx, http.DefaultClient, from)
	if err != nil {
		return nil, err
	}
	defer packed.Close()
	return io.ReadAll(io.LimitReader(packed, maxPackageBytes))
}

func (l lock) verify(packed []byte) error {
	sum := sha512.Sum512(packed)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != l.Integrity {
		return fmt.Errorf("the hash of %s %s is %s, not %s of viewer-lock.json: it is damaged or not the same package", l.Name, l.Version,
			got, l.Integrity)
	}
	return nil
}

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
		return writeFile(filepath.Join(folder, name), content)
	})
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(folder, "integrity"), []byte(l.Integrity))
}

func compress(content []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(content)                               // a buffer accepts everything
	_ = w.Close()
	return b.Bytes()
}

// writeFile replaces a file at once, so that an interrupted run leaves no half of it.
func writeFile(name string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), "*.part")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
