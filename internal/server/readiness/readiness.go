// Package readiness finds out whether the server can store calls.
package readiness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/wiring"
)

// Config holds the dependencies of a Storage.
type Config struct {
	DB    *db.DB
	Data  string // folder with the database file; the disk is checked if the database is SQLite
	Clock clock.Clock
	Log   *slog.Logger
}

// Storage checks that the database can commit, and that its disk has space. It is safe for concurrent use.
type Storage struct {
	cfg Config

	mu      sync.Mutex // guards the fields below
	running *attempt
	ended   *attempt // the last one that ended
	lacking bool     // the last result was an error
}

// attempt is one check. Requests that come while it runs share its result.
type attempt struct {
	done  chan struct{}
	begun time.Time
	err   error
}

// Times of the check.
const (
	// reuse is how long a result counts. /ready needs no credential, so that anybody may ask often.
	reuse = time.Second
	// patience is how long a request waits for the result.
	patience = 2 * time.Second
	// faultHold is how long an error of another transaction counts. A small write may succeed where others fail: SQLite's log has free
	// space for it.
	faultHold = 3 * time.Second
)

// New returns a Storage.
func New(c Config) *Storage {
	wiring.Check(c)
	return &Storage{cfg: c}
}

// Check returns nil if the server can store calls, or the reason for operators why it cannot. It waits two seconds at most.
func (s *Storage) Check(ctx context.Context) error {
	err := s.check(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() == nil && s.lacking != (err != nil) {
		s.lacking = err != nil
		if s.lacking {
			s.cfg.Log.Warn("not ready", "reason", err)
		} else {
			s.cfg.Log.Info("ready again")
		}
	}
	return err
}

func (s *Storage) check(ctx context.Context) error {
	a := s.attempt()
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case <-a.done:
	case <-ctx.Done():
		return ctx.Err()
	case <-wait.C:
		return errors.New("the database does not answer")
	}
	if a.err != nil {
		return a.err
	}
	if at, err := s.cfg.DB.LastFault(); err != nil && s.cfg.Clock.Now().Sub(at) < faultHold {
		return reason(err)
	}
	return nil
}

// attempt returns the check that runs, or the last one if it is fresh, or begins one.
func (s *Storage) attempt() *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return s.running
	}
	if s.ended != nil && s.cfg.Clock.Now().Sub(s.ended.begun) < reuse {
		return s.ended
	}
	a := &attempt{done: make(chan struct{}), begun: s.cfg.Clock.Now()}
	s.running = a
	go s.run(a)
	return a
}

// attemptTime limits a check. The next one may then use another connection.
const attemptTime = 5 * time.Second

func (s *Storage) run(a *attempt) {
	ctx, cancel := context.WithTimeout(context.Background(), attemptTime)
	defer cancel()
	if s.cfg.DB.Name() == "sqlite" {
		a.err = checkDisk(s.cfg.Data)
	}
	if err := s.cfg.DB.Check(ctx); err != nil && a.err == nil {
		a.err = reason(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.ended = nil, a
	close(a.done)
}

// reason returns an error without names of files, addresses and passwords.
func reason(err error) error {
	switch {
	case db.IsFull(err):
		return errors.New("the database cannot store anything: its disk is full")
	case db.IsReadOnly(err):
		return errors.New("the database cannot store anything: it is read-only")
	case db.IsUnavailable(err), errors.Is(err, context.DeadlineExceeded):
		return errors.New("the database does not answer")
	}
	return errors.New("the database cannot store anything; the log has the reason")
}

// spare is the number of bytes that must fit on the disk: a call with its events.
const spare = 256 << 10

// checkDisk writes a file in a folder and removes it.
func checkDisk(folder string) error {
	f, err := os.CreateTemp(folder, ".ready-*")
	if err == nil {
		_, err = f.Write(make([]byte, spare))
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return errors.New("the disk of the data folder is full")
	case errors.Is(err, syscall.EROFS):
		return errors.New("the disk of the data folder is read-only")
	}
	var system syscall.Errno
	if errors.As(err, &system) {
		return fmt.Errorf("the data folder cannot be written: %w", system)
	}
	return errors.New("the data folder cannot be written")
}

// Free returns the bytes that are free for this user on the disk of a folder, and its size. Both are 0 if they are not known.
func Free(folder string) (free, size uint64) {
	var fs syscall.Statfs_t
	if syscall.Statfs(folder, &fs) != nil {
		return 0, 0
	}
	block := uint64(fs.Bsize)      //nolint:unconvert // Bsize is uint32 on Darwin
	available := uint64(fs.Bavail) //nolint:unconvert // Bavail is signed on FreeBSD
	return available * block, fs.Blocks * block
}
