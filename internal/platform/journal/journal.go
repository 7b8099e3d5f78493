// Package journal stores data on disk until the database has committed it, so that a response can be sent before the
// commit.
//
// Append copies into a memory-mapped file, or makes one system call if the file cannot be mapped. A commit of SQLite
// writes some dozens of pages. A caller that needs durability waits for the journal, and the commit can be shared
// with other transactions. After a kill, the next start finds the entries that were not settled. As with commits of
// calls (decision 13), the operating system writes to the disk later: a power failure may lose the last entries.
package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Journal writes to two files alternately. A file is emptied when all of its entries are settled. It is safe for
// concurrent use.
type Journal struct {
	mu        sync.Mutex // guards the fields below
	files     [2]journalFile
	active    int
	next      uint64          // number of the next entry
	settled   uint64          // all entries up to it are settled
	unsettled map[uint64]bool // entries after settled; true if settled
	buf       []byte
	emptying  bool // a timer to empty the files runs
	uncleared bool // the entries returned by Open are not in the database yet
	closed    bool
}

const (
	headerSize = 24
	// switchSize is the size in bytes at which the journal switches to the other file. maxFileSize is the size limit of a file
	// while the other one cannot be reused.
	switchSize  = 1 << 20
	maxFileSize = 64 << 20
	// mappedSize is the mapped size of a file. It covers all writes with few exceptions.
	mappedSize = switchSize + 256<<10
	// emptyAfter is the delay before the files are emptied when everything is settled. A start within it may find
	// settled entries.
	emptyAfter = 50 * time.Millisecond
)

// ErrFull is returned if too much data waits for the database, ErrNotCleared before Clear was called, ErrClosed after
// Close.
var (
	ErrNotCleared = errors.New("journal: entries found at the start are not in the database yet")
	ErrFull       = errors.New("journal: too many entries are not committed to the database")
	ErrClosed     = errors.New("journal: closed")
)

// Open opens the journal in a folder, and returns the entries that were not settled, in order. They stay in the files
// until Clear.
func Open(dir string) (*Journal, [][]byte, error) {
	j := &Journal{unsettled: map[uint64]bool{}}
	var all foundEntries
	for i := range j.files {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("journal.%d", i)), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("journal: %w", err), j.closeFiles())
		}
		j.files[i].file = f
		if j.files[i].size, err = all.read(f); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("journal: %w", err), j.closeFiles())
		}
		j.files[i].mem = mapped(f, mappedSize)
	}
	j.next, j.settled = all.last+1, all.last
	left := all.left()
	if len(left) == 0 {
		return j, nil, j.Clear()
	}
	j.uncleared = true
	return j, left, nil
}

// Clear empties the journal. Call it after the entries returned by Open are in the database.
func (j *Journal) Clear() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.files {
		if err := j.files[i].empty(); err != nil {
			return err
		}
	}
	j.uncleared = false
	return nil
}

// Append stores an entry. Call settle when its data is in the database. On an error nothing is stored.
func (j *Journal) Append(what []byte) (settle func(), err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.closed:
		return nil, ErrClosed
	case j.uncleared:
		return nil, ErrNotCleared
	}
	j.switchFile()
	if j.files[j.active].size+int64(len(what)) > maxFileSize {
		return nil, ErrFull
	}
	n := j.next
	if err := j.put(n, what); err != nil {
		return nil, err
	}
	j.next++
	j.unsettled[n] = false
	return func() { j.settle(n) }, nil
}

// put writes an entry after the others. After a failed write the next entry overwrites it, or it is incomplete.
func (j *Journal) put(n uint64, what []byte) error {
	p := &j.files[j.active]
	b := append(j.buf[:0], make([]byte, headerSize)...)
	b = append(b, what...)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(what)))
	binary.LittleEndian.PutUint64(b[8:], n)
	binary.LittleEndian.PutUint64(b[16:], j.settled)
	binary.LittleEndian.PutUint32(b, crc32.ChecksumIEEE(b[4:]))
	j.buf = b
	if err := p.add(b); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	p.last = n
	return nil
}

// switchFile switches to the other file if this one has reached switchSize and all entries of the other one are settled.
func (j *Journal) switchFile() {
	other := &j.files[1-j.active]
	if j.files[j.active].size < switchSize || other.last > j.settled || other.empty() != nil {
		return
	}
	j.active = 1 - j.active
}

func (j *Journal) settle(n uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, known := j.unsettled[n]; !known {
		return
	}
	j.unsettled[n] = true
	for j.unsettled[j.settled+1] {
		j.settled++
		delete(j.unsettled, j.settled)
	}
	if len(j.unsettled) == 0 && !j.emptying && !j.closed {
		j.emptying = true
		time.AfterFunc(emptyAfter, j.emptyIfSettled)
	}
}

// emptyIfSettled empties the files if everything is settled, so that a start finds no settled entries, and erased personal data
// does not remain in them.
func (j *Journal) emptyIfSettled() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.emptying = false
	if !j.closed && len(j.unsettled) == 0 {
		_ = j.empty() // on failure, all entries but the last are recorded as settled by later ones
	}
}

func (j *Journal) empty() error {
	for i := range j.files {
		if p := &j.files[i]; p.size > 0 {
			if err := p.empty(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Waiting returns the number of entries that are not settled.
func (j *Journal) Waiting() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.unsettled)
}

// Close empties the files if everything is settled, and closes them. The next start finds the other entries.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	var err error
	if !j.uncleared && len(j.unsettled) == 0 {
		err = j.empty()
	}
	j.closed = true
	return errors.Join(err, j.closeFiles())
}

func (j *Journal) closeFiles() (err error) {
	for _, p := range j.files {
		if p.file != nil {
			err = errors.Join(err, p.close())
		}
	}
	return err
}
