// Package blob stores files that are too large for the database: recordings and prompts.
package blob

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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

// ErrIrregular is returned if the file with a name is not a regular file, such as a symbolic link. Links are not followed,
// because a link could make the server read or overwrite any file of the machine.
var ErrIrregular = errors.New("not a plain file; remove it")

// Dir is a Store in a directory. The directory itself may be a symbolic link, to have it on another disk.
type Dir struct {
	root   string
	others Others
}

// Others are the other servers that have files of the same database.
type Others interface {
	// RemoveElsewhere deletes a file or folder at the other servers. A missing one is not an error.
	RemoveElsewhere(ctx context.Context, name string) error
}

// Alone is the Others of a server that is the only one.
type Alone struct{}

// RemoveElsewhere does nothing.
func (Alone) RemoveElsewhere(context.Context, string) error { return nil }

// OpenDir opens a directory as a Store, and creates it if necessary.
func OpenDir(path string, others Others) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("open blob folder: %w", err)
	}
	return &Dir{root: path, others: others}, nil
}

// Path returns the path of a file, which need not exist. Writers that need a local file write it in the same folder and rename it.
func (d *Dir) Path(name string) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	return filepath.Join(d.root, name), d.checkLinks(name)
}

func checkName(name string) error {
	if name == "" || filepath.Clean("/"+name) != "/"+name || strings.Contains(name, "\\") {
		return fmt.Errorf("blob name %q is not plain", name)
	}
	return nil
}

// checkLinks returns ErrIrregular if a part of the path of a name is a symbolic link.
func (d *Dir) checkLinks(name string) error {
	at := d.root
	for part := range strings.SplitSeq(name, "/") {
		at = filepath.Join(at, part)
		switch info, err := os.Lstat(at); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s: %w", at, ErrIrregular)
		}
	}
	return nil
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

// Open opens a file, or returns ErrNone. It opens within the folder (openat), so that not even a link that appears meanwhile leads out of
// it.
func (d *Dir) Open(_ context.Context, name string) (io.ReadSeekCloser, int64, error) {
	if _, err := d.Path(name); err != nil {
		return nil, 0, err
	}
	root, err := os.OpenRoot(d.root)
	if err != nil {
		return nil, 0, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe does not block
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", name, ErrIrregular)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// WriteFile writes a file of a store at its path and returns its size. It writes to a .part file, syncs and renames it, so that the file is
// complete or absent. An unfinished one of before is written again.
func WriteFile(path string, fill func(w io.Writer) error) (size int64, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return 0, err
	}
	part := path + unfinished
	file, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return 0, err
	}
	buffer := bufio.NewWriterSize(file, 1<<16)
	if err = fill(buffer); err == nil {
		err = errors.Join(buffer.Flush(), file.Sync())
	}
	if info, statErr := file.Stat(); statErr == nil {
		size = info.Size()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return 0, errors.Join(err, os.Remove(part))
	}
	return size, rename(part, path)
}

// unfinished ends the name of a file that is still written.
const unfinished = ".part"

// Delete deletes a file, finished or not. If it is not here, it is deleted at the other servers. A missing file is not an error.
func (d *Dir) Delete(ctx context.Context, name string) error {
	found, err := d.remove(name)
	if err != nil || found {
		return err
	}
	return d.others.RemoveElsewhere(ctx, name)
}

// remove deletes a file, finished or not, in this directory. It reports whether there was one.
func (d *Dir) remove(name string) (found bool, err error) {
	root, err := d.open(name)
	if err != nil {
		return false, ignoreNone(err)
	}
	defer root.Close()
	for _, n := range []string{name, name + unfinished} {
		switch err := root.Remove(n); {
		case err == nil:
			found = true
		case !errors.Is(err, ErrNone):
			return found, err
		}
	}
	return found, nil
}

// open opens the folder for the removal of a name. A link at the name itself is removed, not followed.
func (d *Dir) open(name string) (*os.Root, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if err := d.checkLinks(filepath.Dir(name)); err != nil {
		return nil, err
	}
	return os.OpenRoot(d.root)
}

func ignoreNone(err error) error {
	if errors.Is(err, ErrNone) {
		return nil
	}
	return err
}

// DeleteAll deletes a folder with its contents, such as that of an organisation, here and at the other servers. A missing folder
// is not an error.
func (d *Dir) DeleteAll(ctx context.Context, folder string) error {
	if err := d.DeleteHere(folder); err != nil {
		return err
	}
	return d.others.RemoveElsewhere(ctx, folder)
}

// DeleteHere deletes a file, finished or not, or a folder with its contents, in this directory only. A missing one is not an
// error.
func (d *Dir) DeleteHere(name string) error {
	root, err := d.open(name)
	if err != nil {
		return ignoreNone(err)
	}
	defer root.Close()
	return errors.Join(root.RemoveAll(name), ignoreNone(root.Remove(name+unfinished)))
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
