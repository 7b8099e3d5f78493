// Package npm fetches packages of fixed versions from an npm registry and extracts files of them. What npm runs is not needed.
package npm

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

// Registry is the default registry.
const Registry = "https://registry.npmjs.org"

// Package is a version of a package. Its name may have a scope, such as @of/model.
type Package struct{ Name, Version string }

// FileName returns the name of the file that npm pack makes.
func (p Package) FileName() string {
	return strings.NewReplacer("@", "", "/", "-").Replace(p.Name) + "-" + p.Version + ".tgz"
}

// Fetch opens the package at a registry. size is its length in bytes, or -1 if the registry sends none. The caller compares the hash.
func (p Package) Fetch(ctx context.Context, client *http.Client, registry string) (packed io.ReadCloser, size int64, err error) {
	address := strings.TrimRight(registry, "/") + "/" + p.Name + "/-/" + path.Base(p.Name) + "-" + p.Version + ".tgz"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, 0, err
	}
	res, err := client.Do(r)
	if err != nil {
		return nil, 0, err
	}
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		return nil, 0, fmt.Errorf("%s answered %s", address, res.Status)
	}
	return res.Body, res.ContentLength, nil
}

// Extract passes the contents of some files of a package to write, in the order of the package. Names are relative to the only folder of
// a package. A file that the package lacks is an error.
func Extract(packed io.Reader, names []string, write func(name string, content io.Reader) error) error {
	z, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	wanted := make(map[string]bool, len(names))
	for _, name := range names {
		wanted[name] = true
	}
	for archive := tar.NewReader(z); len(wanted) > 0; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%d of its files are missing", len(wanted))
		}
		if err != nil {
			return err
		}
		_, name, _ := strings.Cut(h.Name, "/")
		if !wanted[name] || h.Typeflag != tar.TypeReg {
			continue
		}
		delete(wanted, name)
		if err := write(name, archive); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// ExtractAll passes the contents of all files of a package to write, in the order of the package. Names are relative to the only folder of
// a package. A name that leads out of it is an error.
func ExtractAll(packed io.Reader, write func(name string, content io.Reader) error) error {
	z, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	for archive := tar.NewReader(z); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		_, name, _ := strings.Cut(h.Name, "/")
		if !fs.ValidPath(name) {
			return fmt.Errorf("the package has a file with the name %q, which leads out of it", h.Name)
		}
		if err := write(name, archive); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}
