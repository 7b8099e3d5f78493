// Package blob stores files that are too large for the database: recordings and prompts.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Store keeps named files. Names look like org_…/2026/11/call_….wav.
type Store interface {
	Put(ctx context.Context, name string, from io.Reader) (size int64, err error)
	Import(ctx context.Context, name, path string) error // moves a finished local file into the store
	Open(ctx context.Context, name string) (io.ReadSeekCloser, int64, error)
	Delete(ctx context.Context, name string) error
	Stat(ctx context.Context, name string) (size int64, err error)
}

// ErrNone is returned if the file does not exist.
var ErrNone = fs.ErrNotExist

// Dir is a Store in a directory.
type Dir struct{ root string }

// OpenDir opens a directory as a Store, and creates it if necessary.
func OpenDir(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("open blob folder: %w", err)
	}
	return &Dir{root: path}, nil
}

// Path returns the path of a file. Writers that need a local file write it in the same folder and rename it.
func (d *Dir) Path(name string) (string, error) {
	clean := filepath.Clean("/" + name)
	if name == "" || clean != "/"+name || strings.Contains(name, "\\") {
		return "", fmt.Errorf("blob name %q is not plain", name)
	}
	return filepath.Join(d.root, clean), nil
}

// Put writes a file atomically: it is complete or does not exist.
func (d *Dir) Put(_ context.Context, name string, from io.Reader) (int64, error) {
	path, err := d.Path(name)
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return 0, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".put-*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	n, err := io.Copy(f, from)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, fmt.Errorf("put blob %s: %w", name, err)
	}
	return n, rename(f.Name(), path)
}

// Import moves a finished local file into the store. It does nothing if the file is already there.
func (d *Dir) Import(_ context.Context, name, from string) error {
	path, err := d.Path(name)
	if err != nil || from == path {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return rename(from, path)
}

// rename renames a file durably: it also syncs the folder.
func rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Open opens a file, or returns ErrNone.
func (d *Dir) Open(_ context.Context, name string) (io.ReadSeekCloser, int64, error) {
	path, err := d.Path(name)
	if err != nil {
		return nil, 0, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// Delete deletes a file. A missing file is not an error.
func (d *Dir) Delete(_ context.Context, name string) error {
	path, err := d.Path(name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// DeleteAll deletes a folder with its contents, such as that of an organisation. A missing folder is not an error.
func (d *Dir) DeleteAll(_ context.Context, folder string) error {
	path, err := d.Path(folder)
	if err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// Stat returns the size of a file, or ErrNone.
func (d *Dir) Stat(_ context.Context, name string) (int64, error) {
	path, err := d.Path(name)
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
