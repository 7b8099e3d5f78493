package db

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// soon is how long what was committed swiftly may stay in the memory of the operating system.
const soon = 20 * time.Millisecond

// writeLog brings SQLite's write-ahead log to the disk. SQLite itself, told so by synchronous=NORMAL, waits for the disk only when
// it moves the log's contents into the database. A frame of the log that is not whole ends it: what a power cut takes
// is the newest commits, never the order of what came before.
type writeLog struct {
	path  string
	syncs atomic.Int64
	wake  chan struct{}
	quit  chan struct{}
	done  chan struct{}
	once  sync.Once

	mu     sync.Mutex // guards the two below
	file   *os.File
	failed error // after a sync that failed nobody knows what is on the disk
}

func newWriteLog(path string) *writeLog {
	l := &writeLog{path: path + "-wal", wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	go l.run()
	return l
}

// sync returns when all that was committed is on the disk.
func (l *writeLog) sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select { // what waits to be synced soon is synced with it
	case <-l.wake:
	default:
	}
	if l.failed != nil {
		return l.failed
	}
	if err := l.bring(); err != nil {
		l.failed = fmt.Errorf("bring the log of the database to the disk: %w; the server must be started again", err)
		return l.failed
	}
	l.syncs.Add(1)
	return nil
}

func (l *writeLog) bring() (err error) {
	if l.file == nil {
		if l.file, err = os.OpenFile(l.path, os.O_RDWR, 0); err != nil {
			return err
		}
	}
	return syncData(l.file)
}

// syncSoon has all that was committed on the disk within soon, and the time that the disk takes.
func (l *writeLog) syncSoon() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run syncs what was committed swiftly.
func (l *writeLog) run() {
	defer close(l.done)
	for {
		select {
		case <-l.quit:
			return
		case <-l.wake:
		}
		timer := time.NewTimer(soon)
		select {
		case <-l.quit:
			timer.Stop()
			return
		case <-timer.C:
		}
		_ = l.sync() // who writes next is told
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
