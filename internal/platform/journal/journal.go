// Package journal keeps on disk, for a moment, what somebody was told of and the database has not committed yet.
//
// Appending copies into a file that is mapped into memory (where files cannot be, it is one call of the system), where a commit of SQLite writes some dozens of pages: who must not be told before something
// is sure waits for the journal, and the commit can be shared with others. What a killed process had appended and not settled is found
// again when it starts. As with commits of calls (decision 13), the operating system brings it to the disk: a power cut may cost the
// last of it.
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

// A Journal is two files that are filled in turns: one is emptied once all that it holds is settled. It is safe for concurrent use.
type Journal struct {
	mu       sync.Mutex // guards the fields below
	parts    [2]part
	active   int
	next     uint64          // the number of the next entry
	settled  uint64          // all entries up to it are
	open     map[uint64]bool // entries that were appended after settled, and whether they are settled
	buf      []byte
	emptying bool // the files are emptied in a moment
	unread   bool // what Open returned is not in the database yet
	closed   bool
}

const (
	headerSize = 24
	// turnAt is the size in bytes at which the other file is written to, and most how large a file may get while the other is needed.
	turnAt = 1 << 20
	most   = 64 << 20
	// window is how much of a file is mapped into memory: with few exceptions all that is written.
	window = turnAt + 256<<10
	// emptyAfter is how long after everything is settled the files are emptied: what is younger may be found again at a start.
	emptyAfter = 50 * time.Millisecond
)

// ErrFull says that too much waits for the database, ErrUnread that Clear was not called yet, and ErrClosed that the journal is closed.
var (
	ErrUnread = errors.New("journal: what was found is not in the database yet")
	ErrFull   = errors.New("journal: too much waits for the database")
	ErrClosed = errors.New("journal: closed")
)

// Open opens the journal in a folder, and returns what was appended there and not settled, in order. It stays there until Clear.
func Open(dir string) (*Journal, [][]byte, error) {
	j := &Journal{open: map[uint64]bool{}}
	var all entries
	for i := range j.parts {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("journal.%d", i)), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("journal: %w", err), j.closeFiles())
		}
		j.parts[i].file = f
		if j.parts[i].size, err = all.read(f); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("journal: %w", err), j.closeFiles())
		}
		j.parts[i].mem = mapped(f, window)
	}
	j.next, j.settled = all.last+1, all.last
	left := all.left()
	if len(left) == 0 {
		return j, nil, j.Clear()
	}
	j.unread = true
	return j, left, nil
}

// Clear empties the journal once what Open returned is in the database.
func (j *Journal) Clear() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.parts {
		if err := j.parts[i].empty(); err != nil {
			return err
		}
	}
	j.unread = false
	return nil
}

// Append keeps something, and returns what is to be called once that is in the database. Where it fails, nothing is kept.
func (j *Journal) Append(what []byte) (settle func(), err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.closed:
		return nil, ErrClosed
	case j.unread:
		return nil, ErrUnread
	}
	j.turn()
	if j.parts[j.active].size+int64(len(what)) > most {
		return nil, ErrFull
	}
	n := j.next
	if err := j.put(n, what); err != nil {
		return nil, err
	}
	j.next++
	j.open[n] = false
	return func() { j.settle(n) }, nil
}

// put writes an entry behind the others. What was written of one that failed is written over by the next, or is not whole.
func (j *Journal) put(n uint64, what []byte) error {
	p := &j.parts[j.active]
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

// turn goes on in the other file where this one is long and nothing of the other is needed any more.
func (j *Journal) turn() {
	other := &j.parts[1-j.active]
	if j.parts[j.active].size < turnAt || other.last > j.settled || other.empty() != nil {
		return
	}
	j.active = 1 - j.active
}

func (j *Journal) settle(n uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, known := j.open[n]; !known {
		return
	}
	j.open[n] = true
	for j.open[j.settled+1] {
		j.settled++
		delete(j.open, j.settled)
	}
	if len(j.open) == 0 && !j.emptying && !j.closed {
		j.emptying = true
		time.AfterFunc(emptyAfter, j.rest)
	}
}

// rest empties the files where everything is settled, so that none of it is found again, and nobody who is erased is left in them.
func (j *Journal) rest() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.emptying = false
	if !j.closed && len(j.open) == 0 {
		_ = j.empty() // what stays says itself that it is settled, but for the last
	}
}

func (j *Journal) empty() error {
	for i := range j.parts {
		if p := &j.parts[i]; p.size > 0 {
			if err := p.empty(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Waiting is how many entries are not settled.
func (j *Journal) Waiting() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.open)
}

// Close empties the files where everything is settled, and closes them; what is not is found again at the next start.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	var err error
	if !j.unread && len(j.open) == 0 {
		err = j.empty()
	}
	j.closed = true
	return errors.Join(err, j.closeFiles())
}

func (j *Journal) closeFiles() (err error) {
	for _, p := range j.parts {
		if p.file != nil {
			err = errors.Join(err, p.close())
		}
	}
	return err
}
