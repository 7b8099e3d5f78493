package datadir

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxOrphanSize is the maximum size in bytes of a recording that is removed without a row: two seconds of two channels
// of G.711.
const maxOrphanSize = 2 * 2 * 8000

// RemoveOrphanRecordings removes recordings that began in the last moments before a crash, before their row was committed.
// Recovery has handled all other files that are older than this process, except those of resumed calls. Longer files
// are kept, and their names are logged.
func RemoveOrphanRecordings(folder string, started time.Time, carried func(callID string) bool, log *slog.Logger) error {
	var failed error
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".part") {
			return err
		}
		info, err := d.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist) || err == nil && !info.ModTime().Before(started):
		case err != nil:
			failed = errors.Join(failed, err)
		case carried(callOf(path)):
		case info.Size() > maxOrphanSize:
			log.Warn("audio without a recording's row", "path", path, "bytes", info.Size())
		default:
			failed = errors.Join(failed, os.Remove(path))
		}
		return nil
	})
	return errors.Join(err, failed)
}

// callOf returns the call of a recording file. Files are named call_id.wav, call_id-2.wav and so on.
func callOf(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	id, _, _ := strings.Cut(name, "-")
	return id
}
