package db

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// relaxedSyncDelay is the longest time that a relaxed commit stays unsynced.
const relaxedSyncDelay = 20 * time.Millisecond

// writeLog syncs SQLite's write-ahead log. SQLite itself, with synchronous=NORMAL, calls fsync only at a checkpoint.
// An incomplete frame ends the log. A power failure therefore loses only the newest commits, and never changes their
// order.
type writeLog struct {
	path  string
	syncs atomic.Int64
	wake  chan struct{}
	quit  chan struct{}
	done  chan struct{}
	once  sync.Once

	mu     sync.Mutex // guards the two below
	file   *os.File
	failed error // after a failed fsync the state of the disk is unknown
}

func newWriteLog(path string) *writeLog {
	l := &writeLog{path: path + "-wal", wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	go l.run()
	return l
}

// sync returns when all earlier commits are on disk.
func (l *writeLog) sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select { // it covers the pending syncSoon
	case <-l.wake:
	default:
	}
	if l.failed != nil {
		return l.failed
	}
	if err := l.syncFile(); err != nil {
		l.failed = fmt.Errorf("sync the write-ahead log: %w; restart the server", syncError{err})
		return l.failed
	}
	l.syncs.Add(1)
	return nil
}

// fault returns the error of the fsync that failed, or nil. It does not wait for an fsync that runs.
func (l *writeLog) fault() error {
	if !l.mu.TryLock() {
		return nil
	}
	defer l.mu.Unlock()
	return l.failed
}

func (l *writeLog) syncFile() (err error) {
	if l.file == nil {
		if l.file, err = os.OpenFile(l.path, os.O_RDWR, 0); err != nil {
			return err
		}
	}
	return syncData(l.file)
}

// syncSoon schedules a sync of all commits within relaxedSyncDelay, plus the duration of the fsync.
func (l *writeLog) syncSoon() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run syncs relaxed commits.
func (l *writeLog) run() {
	defer close(l.done)
	for {
		select {
		case <-l.quit:
			return
		case <-l.wake:
		}
		timer := time.NewTimer(relaxedSyncDelay)
		select {
		case <-l.quit:
			timer.Stop()
			return
		case <-timer.C:
		}
		_ = l.sync() // the next write returns the error
	}
}

func (l *writeLog) close() error {
	l.once.Do(func() { close(l.quit) })
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}
