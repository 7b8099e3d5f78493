package journal

import (
	"fmt"
	"os"
	"runtime/debug"
)

// A part is one of the files.
type part struct {
	file *os.File
	mem  []byte // its beginning; nil where it cannot be mapped into memory
	size int64  // of its entries
	last uint64 // the number of its last entry
}

// add writes behind what is there.
func (p *part) add(b []byte) (err error) {
	if p.size+int64(len(b)) <= int64(len(p.mem)) {
		err = p.touch(func() { copy(p.mem[p.size:], b) })
	} else {
		_, err = p.file.WriteAt(b, p.size)
	}
	if err == nil {
		p.size += int64(len(b))
	}
	return err
}

// touch does something with the memory. Where the disk has no room or fails that is a fault: the file is written to from then on, which says
// what is wrong.
func (p *part) touch(do func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			p.mem, err = nil, fmt.Errorf("a file in memory: %v", r)
		}
	}()
	do()
	return nil
}

// empty leaves nothing of what was in the file. What is mapped keeps its room on the disk, and is zero: that begins no entry.
func (p *part) empty() (err error) {
	mapped := int64(len(p.mem))
	if p.size > mapped {
		err = p.file.Truncate(mapped)
	}
	if err == nil {
		err = p.touch(func() { clear(p.mem[:min(p.size, mapped)]) })
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	p.size = 0
	return nil
}

func (p *part) close() error {
	if p.mem != nil {
		unmap(p.mem)
		p.mem = nil
	}
	return p.file.Close()
}
