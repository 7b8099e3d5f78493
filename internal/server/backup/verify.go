package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/seal"
	"soniq/internal/server/datadir"
	"soniq/internal/server/installation"
)

// Report says what a verified backup has.
type Report struct {
	Made     time.Time
	Version  string // of soniq that made it
	Files    int
	Bytes    int64
	Database bool // it has the database
}

// maxNamed is the number of wrong files that an error names.
const maxNamed = 5

// Verify reads a whole backup and changes nothing. It returns an error if the backup is incomplete, a file has changed
// or the database is damaged. The same holds if the master key is not that of the database.
func Verify(ctx context.Context, folder string) (Report, error) {
	m, err := readManifest(folder)
	if err != nil {
		return Report{}, err
	}
	r := Report{Made: m.Made, Version: m.Version, Files: len(m.Files)}
	var wrong []string
	for _, want := range m.Files {
		if !filepath.IsLocal(filepath.FromSlash(want.Name)) {
			return r, fmt.Errorf("%s names a file outside the folder: %q", manifestName, want.Name)
		}
		got, err := digest(ctx, filepath.Join(folder, filepath.FromSlash(want.Name)))
		switch {
		case ctx.Err() != nil:
			return r, ctx.Err()
		case errors.Is(err, fs.ErrNotExist):
			wrong = append(wrong, want.Name+" is missing")
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("%s cannot be read: %v", want.Name, err))
		case got.Size != want.Size || got.SHA256 != want.SHA256:
			wrong = append(wrong, want.Name+" was changed")
		}
		r.Bytes += got.Size
		r.Database = r.Database || want.Name == databaseName
	}
	if len(wrong) > 0 {
		return r, damaged(folder, wrong)
	}
	return r, m.verifyDatabase(ctx, folder)
}

func damaged(folder string, wrong []string) error {
	text := strings.Join(wrong[:min(len(wrong), maxNamed)], "; ")
	if more := len(wrong) - maxNamed; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return fmt.Errorf("the backup %s is not intact: %s; a backup that was started is no longer the one that was made; use another one",
		folder, text)
}

// readManifest returns the list of files of a complete backup.
func readManifest(folder string) (m manifest, err error) {
	if err := datadir.CheckComplete(folder); err != nil {
		return m, err
	}
	text, err := os.ReadFile(filepath.Join(folder, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("%s has no %s: it is no backup, one that was not finished, or one of an earlier version", folder, manifestName)
	}
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err == nil && m.Made.IsZero() {
		err = errors.New("it does not say when the backup was made")
	}
	if err != nil {
		return m, fmt.Errorf("read %s of the backup %s: %w; use another one", manifestName, folder, err)
	}
	return m, nil
}

// verifyDatabase checks the database of the backup and its key.
func (m manifest) verifyDatabase(ctx context.Context, folder string) error {
	path := filepath.Join(folder, databaseName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil // PostgreSQL
	}
	fingerprint, err := db.VerifyFile(ctx, path, db.KeyFingerprint)
	if err != nil {
		return fmt.Errorf("the backup %s is not intact: %w; use another one", folder, err)
	}
	key, err := seal.Read(installation.KeyPath(folder))
	if err != nil {
		return fmt.Errorf("the backup %s: %w", folder, err)
	}
	if fingerprint != "" && fingerprint != key.Fingerprint() {
		return fmt.Errorf("the backup %s: %w; use another one", folder, installation.ErrKey)
	}
	return nil
}
