package journal

import (
	"os"
	"syscall"
)

// mapped is the beginning of a file in memory, nil where that cannot be. Its room on the disk is taken now: none is missing when it is written to.
func mapped(f *os.File, size int) []byte {
	if err := syscall.Fallocate(int(f.Fd()), 0, 0, int64(size)); err != nil {
		return nil
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil
	}
	return b
}

func unmap(b []byte) { _ = syscall.Munmap(b) }
