// Package datadir has the files of a data folder that belong to no other package: its lock, the time at which the node was
// last alive, and recordings without a row.
package datadir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"soniq/internal/platform/clock"
)

// ErrInUse is returned if another process has locked the data folder.
var ErrInUse = errors.New("another soniq serves this data folder")

// Lock creates the data folder and locks it until the process ends. It sets the umask, so that only the
// owner can read new files.
func Lock(path string) (*os.File, error) {
	if err := CheckComplete(path); err != nil {
		return nil, err
	}
	syscall.Umask(0o077)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err := protect(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%w (%s); stop it, or use another --data", ErrInUse, path)
	}
	return f, nil
}

// ErrExposed is returned if other users of the machine have access to the data folder that cannot be taken away.
var ErrExposed = errors.New("other users have access to the data folder")

// protect takes the data folder from other users of the machine. It refuses a folder in which they may write: they may have put keys, links
// or a database there.
func protect(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	mode := info.Mode().Perm()
	switch {
	case mode&0o022 != 0:
		return fmt.Errorf("%w (%s has mode %04o): they may change its keys, database and recordings; check that all files in it are yours, then run: "+
			"chmod 700 %s", ErrExposed, path, mode, path)
	case mode&0o055 == 0:
		return nil
	}
	if err := os.Chmod(path, mode&0o700); err != nil {
		return fmt.Errorf("%w (%s has mode %04o, and it cannot be changed: %w); run as its owner: chmod 700 %s", ErrExposed, path, mode, err, path)
	}
	return nil
}

// LastAlive returns the last time at which a node that crashed was alive. It is zero if the node stopped in order.
func LastAlive(data string) time.Time {
	info, err := os.Stat(filepath.Join(data, "alive"))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// KeepAlive updates the time of the file every second until the context ends.
func KeepAlive(ctx context.Context, data string) {
	path := filepath.Join(data, "alive")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return // only the end times of calls that a crash cuts become less exact
	}
	tick := clock.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			_ = os.Chtimes(path, now, now)
		}
	}
}
