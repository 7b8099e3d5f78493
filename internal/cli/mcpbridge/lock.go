package mcpbridge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A lock that is older than staleAfter is removed, because its process has ended. The time is longer than a request
// may take. retryInterval is the time between two attempts to take a lock.
const (
	staleAfter    = time.Minute
	retryInterval = 40 * time.Millisecond
)

// withLock calls do while it holds the lock file, which the npm package uses too. If two processes used the same
// refresh token, the server would end the login.
func (s *Store) withLock(ctx context.Context, do func() error) error {
	if err := os.MkdirAll(filepath.Dir(s.File), 0o700); err != nil {
		return fmt.Errorf("keep login: %w", err)
	}
	lock, mark := s.File+".lock", rand.Text()
	ctx, cancel := context.WithTimeout(ctx, 2*staleAfter)
	defer cancel()
	for {
		err := createLock(lock, mark)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("lock login: %w", err)
		}
		removeStaleLock(lock, mark)
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is held by another program: %w", lock, ctx.Err())
		case <-time.After(retryInterval):
		}
	}
	defer func() {
		if held, err := os.ReadFile(lock); err == nil && string(held) == mark {
			_ = os.Remove(lock)
		}
	}()
	return do()
}

func createLock(lock, mark string) error {
	f, err := os.OpenFile(lock, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(mark)
	return errors.Join(err, f.Close())
}

// removeStaleLock removes the lock of a process that ended without doing so. If the lock was replaced meanwhile, it
// is put back.
func removeStaleLock(lock, mark string) {
	i, err := os.Stat(lock)
	if err != nil || time.Since(i.ModTime()) < staleAfter {
		return
	}
	old, err := os.ReadFile(lock)
	aside := lock + "." + mark
	if err != nil || os.Rename(lock, aside) != nil {
		return // another process removed it
	}
	if now, err := os.ReadFile(aside); err == nil && string(now) != string(old) {
		_ = os.Link(aside, lock)
	}
	_ = os.Remove(aside)
}
