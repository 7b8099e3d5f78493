// Command apiviewer fetches the viewer of the API reference into internal/api/rest/docs/viewer, where the build embeds it.
//
//	apiviewer [--from package.tgz]
//
// The lock file viewer-lock.json pins the npm package by version and SHA-512. A package that was fetched once is kept in the user's cache
// folder. npm_config_registry names another npm registry.
package main

import (
	"archive/tar"
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
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"soniq/internal/intelligence/speechmodel"
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
		cached = filepath.Join(dir, "soniq", l.fileName())
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

// fileName returns the name that npm pack gives the package.
func (l lock) fileName() string {
	return strings.NewReplacer("@", "", "/", "-").Replace(l.Name) + "-" + l.Version + ".tgz"
}

func (l lock) fetch() ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	from := strings.TrimRight(cmp.Or(os.Getenv("npm_config_registry"), os.Getenv("NPM_CONFIG_REGISTRY"), speechmodel.Registry), "/")
	address := fmt.Sprintf("%s/%s/-/%s-%s.tgz", from, l.Name, path.Base(l.Name), l.Version)
	fmt.Fprintf(os.Stderr, "fetching the viewer of the API reference (%s %s)\n", l.Name, l.Version)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s", address, res.Status)
	}
	return io.ReadAll(io.LimitReader(res.Body, maxPackageBytes))
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
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	missing := len(l.Files)
	for files := tar.NewReader(unpacked); missing > 0; {
		h, err := files.Next()
		if err != nil {
			return fmt.Errorf("%d of %d files are not in the package: %w", missing, len(l.Files), err)
		}
		name, ok := l.Files[strings.TrimPrefix(h.Name, "package/")]
		if !ok {
			continue
		}
		content, err := io.ReadAll(io.LimitReader(files, maxPackageBytes))
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, ".gz") {
			content = compress(content)
		}
		if err := writeFile(filepath.Join(folder, name), content); err != nil {
			return err
		}
		missing--
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
