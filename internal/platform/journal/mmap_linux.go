package journal

import (
	"os"
	"syscall"
)

// mapped maps the beginning of a file into memory; nil if that is not possible. It allocates the disk space first, so
// that writes do not fail for lack of space.
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
