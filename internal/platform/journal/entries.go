package journal

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"io"
	"os"
	"slices"
)

// foundEntries has the entries of both files.
type foundEntries struct {
	all     []entry
	last    uint64 // highest sequence number
	settled uint64 // highest number up to which all entries are recorded as settled
}

type entry struct {
	n    uint64
	data []byte
}

// read reads a file up to its first incomplete entry, or to an entry from before the file was reused. size is its
// length without trailing zeros.
func (e *foundEntries) read(f *os.File) (size int64, err error) {
	b, err := io.ReadAll(f)
	if err != nil {
		return 0, err
	}
	size = int64(len(bytes.TrimRight(b, "\x00")))
	for before := uint64(0); len(b) >= headerSize; {
		long := int(binary.LittleEndian.Uint32(b[4:]))
		if long > len(b)-headerSize || crc32.ChecksumIEEE(b[4:headerSize+long]) != binary.LittleEndian.Uint32(b) {
			return size, nil
		}
		n := binary.LittleEndian.Uint64(b[8:])
		if n <= before {
			return size, nil
		}
		e.all = append(e.all, entry{n, b[headerSize : headerSize+long]})
		e.last, e.settled = max(e.last, n), max(e.settled, binary.LittleEndian.Uint64(b[16:]))
		before, b = n, b[headerSize+long:]
	}
	return size, nil
}

// left returns the entries that are not settled, in order.
func (e *foundEntries) left() (found [][]byte) {
	slices.SortFunc(e.all, func(a, b entry) int { return cmp.Compare(a.n, b.n) })
	for _, x := range e.all {
		if x.n > e.settled {
			found = append(found, x.data)
		}
	}
	return found
}
