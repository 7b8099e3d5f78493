package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/server/restored"
)

// backup copies database, keys and recordings into a new folder. Start soniq with --data on that folder to restore.
// The copy knows that it is one and sends nothing until the operator confirms it.
func (p *Platform) backup(ctx context.Context, to string) (string, error) {
	if err := os.Mkdir(to, 0o700); err != nil {
		return "", fmt.Errorf("backup: %w", err)
	}
	note := ""
	if err := p.db.Backup(ctx, filepath.Join(to, "soniq.db"), restored.BackupFacts(time.Now())); errors.Is(err, db.ErrNoBackup) {
		note = " (without the database: " + err.Error() + ")"
	} else if err != nil {
		return "", err
	}
	if err := copyFile(filepath.Join(p.config.Data, "master.key"), filepath.Join(to, "master.key")); err != nil {
		return "", err
	}
	if err := copyContent(filepath.Join(p.config.Data, "node"), filepath.Join(to, "node")); err != nil { // a hard link would be no copy
		return "", err
	}
	n, err := copyTree(filepath.Join(p.config.Data, "recordings"), filepath.Join(to, "recordings"))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: database, keys and %d recordings%s", to, n, note), nil
}

// copyTree copies finished files. Files that are being written are left out, and symbolic links, which lead elsewhere.
func copyTree(from, to string) (n int, err error) {
	err = filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil || strings.HasSuffix(path, ".part") {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if d.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		n++
		return copyFile(path, target)
	})
	return n, err
}

// copyFile copies a file that never changes. It makes a hard link if the target is on the same disk. The operator may have the keys as
// links to another disk: what they lead to is copied.
func copyFile(from, to string) error {
	if info, err := os.Lstat(from); err == nil && info.Mode().IsRegular() && os.Link(from, to) == nil {
		return nil
	}
	return copyContent(from, to)
}

// copyContent copies a file, and makes no link.
func copyContent(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
