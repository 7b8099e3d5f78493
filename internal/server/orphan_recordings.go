package server

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// strayLength is how long a recording may be, in bytes of two channels of G.711, to be one that a crash cut before its row was
// written: two seconds.
const strayLength = 2 * 2 * 8000

// removeStray removes what recordings left behind that began in the last moments before a crash, when no row told of them yet.
// Recovery has been over everything else that is older than this process, but for those of calls that are carried on. Longer
// ones are left, and named in the log.
func removeStray(folder string, started time.Time, carried func(callID string) bool, log *slog.Logger) error {
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
		case info.Size() > strayLength:
			log.Warn("audio without a recording's row", "path", path, "bytes", info.Size())
		default:
			failed = errors.Join(failed, os.Remove(path))
		}
		return nil
	})
	return errors.Join(err, failed)
}

// callOf is the call that a file of a recording belongs to: it is named call_id.wav, the later ones call_id-2.wav and so on.
func callOf(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	id, _, _ := strings.Cut(name, "-")
	return id
}
