package journal

import (
	"fmt"
	"os"
	"runtime/debug"
)

// journalFile is one of the two files.
type journalFile struct {
	file *os.File
	mem  []byte // mapped beginning; nil if it cannot be mapped
	size int64  // size of its entries
	last uint64 // number of its last entry
}

// add appends bytes.
func (p *journalFile) add(b []byte) (err error) {
	if p.size+int64(len(b)) <= int64(len(p.mem)) {
		err = p.accessMem(func() { copy(p.mem[p.size:], b) })
	} else {
		_, err = p.file.WriteAt(b, p.size)
	}
	if err == nil {
		p.size += int64(len(b))
	}
	return err
}

// accessMem runs do, which accesses the mapped memory. A full or failing disk causes a fault, which becomes an error.
// From then on the file is written with system calls, which return the exact error.
func (p *journalFile) accessMem(do func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			p.mem, err = nil, fmt.Errorf("a file in memory: %v", r)
		}
	}()
	do()
	return nil
}

// empty removes all entries. The mapped part keeps its disk space and is zeroed; zeros are not a valid entry.
func (p *journalFile) empty() (err error) {
	mapped := int64(len(p.mem))
	if p.size > mapped {
		err = p.file.Truncate(mapped)
	}
	if err == nil {
		err = p.accessMem(func() { clear(p.mem[:min(p.size, mapped)]) })
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	p.size = 0
	return nil
}

func (p *journalFile) close() error {
	if p.mem != nil {
		unmap(p.mem)
		p.mem = nil
	}
	return p.file.Close()
}
