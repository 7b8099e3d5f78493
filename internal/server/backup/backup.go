// Package backup copies a data folder while soniq runs, and verifies such a copy.
package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"soniq/internal/config"
	"soniq/internal/platform/db"
	"soniq/internal/protocol/media/record"
	"soniq/internal/server/datadir"
	"soniq/internal/server/restored"
)

// manifestName is the file that lists the others with their digests. It is written last.
const manifestName = "backup.json"

// manifest describes a complete backup.
type manifest struct {
	Made    time.Time `json:"made"`
	Version string    `json:"version"` // of soniq
	Files   []file    `json:"files"`
}

// file is a file of a backup.
type file struct {
	Name   string `json:"name"` // path in the folder
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Summary says what a backup has.
type Summary struct {
	Recordings int
	NoDatabase error // reason why the database is not in it; nil if it is
}

// Write copies the database, the keys and certificates, and the recordings into a new folder. The folder has another name until all is on
// the disk, and is removed after an error. The copy shares no file with the original.
func Write(ctx context.Context, d *db.DB, data, to string) (Summary, error) {
	if err := mayWrite(data, to); err != nil {
		return Summary{}, err
	}
	partial := to + ".partial"
	lock, err := datadir.BeginPartial(partial)
	if err != nil {
		return Summary{}, fmt.Errorf("backup: %w", err)
	}
	defer lock.Close()
	s, err := fill(ctx, d, data, partial)
	if err == nil {
		err = datadir.EndPartial(partial, to)
	}
	if err != nil {
		return s, errors.Join(fmt.Errorf("backup: %w; no backup was made", err), os.RemoveAll(partial))
	}
	return s, nil
}

// mayWrite refuses a target that exists, or lies in the folder that is copied.
func mayWrite(data, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("backup: %s exists; give a new folder with --to", to)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("backup: %w", err)
	}
	from, err := filepath.EvalSymlinks(data)
	if err == nil {
		from, err = filepath.Abs(from)
	}
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(to))
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if in, err := filepath.Rel(from, parent); err == nil && (in == "." || filepath.IsLocal(in)) {
		return fmt.Errorf("backup: %s is in the data folder; give a folder outside of it, best on another disk", to)
	}
	return nil
}

// fill writes all files and the manifest.
func fill(ctx context.Context, d *db.DB, data, to string) (s Summary, err error) {
	m := manifest{Made: time.Now().UTC().Truncate(time.Second), Version: config.Version}
	database := filepath.Join(to, databaseName)
	err = d.Backup(ctx, database, restored.BackupFacts(m.Made))
	switch {
	case errors.Is(err, db.ErrNoBackup):
		s.NoDatabase = err
	case err != nil:
		return s, err
	default:
		f, err := digest(ctx, database)
		if err != nil {
			return s, err
		}
		m.Files = append(m.Files, file{databaseName, f.Size, f.SHA256})
	}
	if err := m.copyTop(ctx, data, to); err != nil {
		return s, err
	}
	if s.Recordings, err = m.copyTree(ctx, filepath.Join(data, recordings), to); err != nil {
		return s, err
	}
	text, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		return s, err
	}
	return s, writeFile(filepath.Join(to, manifestName), strings.NewReader(string(text)))
}

const (
	databaseName = "soniq.db"
	recordings   = "recordings"
)

// isLeftOut reports whether a file of the data folder belongs to the running process, or is copied in another way.
func isLeftOut(name string) bool {
	for _, prefix := range []string{databaseName, "journal.", ".", "control.sock", "lock", "alive", manifestName} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// copyTop copies the files of the data folder itself: keys, certificates, the name of the node. The operator may have them as links to
// another disk: what they lead to is copied.
func (m *manifest) copyTop(ctx context.Context, data, to string) error {
	all, err := os.ReadDir(data)
	if err != nil {
		return err
	}
	for _, e := range all {
		path := filepath.Join(data, e.Name())
		info, err := os.Stat(path)
		if isLeftOut(e.Name()) || err != nil || !info.Mode().IsRegular() {
			continue
		}
		if err := m.copyFile(ctx, path, to, e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// copyTree copies recordings and sounds. Recordings of calls in progress are copied as far as they are written: a restored copy finishes
// them as after a crash. Other unfinished files, files that are deleted meanwhile, and symbolic links, which lead elsewhere, are left out.
// The folder itself may be a link to another disk.
func (m *manifest) copyTree(ctx context.Context, from, to string) (n int, err error) {
	if from, err = filepath.EvalSymlinks(from); err != nil {
		return 0, err
	}
	err = filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != from {
			return nil
		}
		if err != nil || strings.HasSuffix(path, record.PartSuffix) && !strings.HasPrefix(d.Name(), callPrefix) {
			return err
		}
		in, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		name := filepath.Join(recordings, in)
		switch {
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		copied, err := m.copyRecording(ctx, path, to, name)
		if copied {
			n++
		}
		return err
	})
	return n, err
}

// callPrefix begins the names of recordings, which are named after their call.
const callPrefix = "call_"

// copyRecording copies a file below recordings and reports whether it was there. A recording that was finished since the folder was read
// is copied under its final name.
func (m *manifest) copyRecording(ctx context.Context, from, to, name string) (bool, error) {
	err := m.copyFile(ctx, from, to, name)
	finished, unfinished := strings.CutSuffix(name, record.PartSuffix)
	if unfinished && errors.Is(err, fs.ErrNotExist) {
		err = m.copyFile(ctx, strings.TrimSuffix(from, record.PartSuffix), to, finished)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) { // deleted, or copied by both names
		return false, nil
	}
	return err == nil, err
}

// copyFile copies a file to a name in the backup.
func (m *manifest) copyFile(ctx context.Context, from, to, name string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	sum := sha256.New()
	counted := &counter{ctx: ctx, in: io.TeeReader(in, sum)}
	if err := writeFile(filepath.Join(to, name), counted); err != nil {
		return err
	}
	m.Files = append(m.Files, file{filepath.ToSlash(name), counted.n, hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// counter counts the bytes that are read, and fails when its context ends.
type counter struct {
	ctx context.Context
	in  io.Reader
	n   int64
}

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.in.Read(p)
	c.n += int64(n)
	return n, err
}

// writeFile writes a new file, and waits until it is on the disk.
func writeFile(path string, in io.Reader) error {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// digest returns the size and the digest of a file.
func digest(ctx context.Context, path string) (file, error) {
	in, err := os.Open(path)
	if err != nil {
		return file{}, err
	}
	defer in.Close()
	sum := sha256.New()
	counted := &counter{ctx: ctx, in: in}
	if _, err := io.Copy(sum, counted); err != nil {
		return file{}, err
	}
	return file{Size: counted.n, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}
