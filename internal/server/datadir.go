package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"soniq/internal/platform/db"
)

// The data folder: its lock, the name of the node, and the time at which the node was last alive.

// ErrDataFolderInUse is returned if another process has locked the data folder.
var ErrDataFolderInUse = errors.New("another soniq serves this data folder")

// LockDataFolder creates the data folder and locks it until the process ends. It sets the umask, so that only the
// owner can read new files.
func LockDataFolder(path string) (*os.File, error) {
	syscall.Umask(0o077)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%w (%s); stop it, or use another --data", ErrDataFolderInUse, path)
	}
	return f, nil
}

// nodeName returns the name of this node. It is created at the first start.
func nodeName(data string) (string, error) {
	path := filepath.Join(data, "node")
	b, err := os.ReadFile(path)
	if err == nil && len(b) > 0 {
		return strings.TrimSpace(string(b)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("node name: %w", err)
	}
	name := db.NewID("node")
	return name, os.WriteFile(path, []byte(name+"\n"), 0o600)
}

// lastAlive returns the last time at which a node that crashed was alive. It is zero if the node stopped in order.
func lastAlive(data string) time.Time {
	info, err := os.Stat(filepath.Join(data, "alive"))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// keepAlive updates the time of the file every second until the context ends.
func keepAlive(ctx context.Context, data string) {
	path := filepath.Join(data, "alive")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return // only the end times of calls that a crash cuts become less exact
	}
	tick := time.NewTicker(time.Second)
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
