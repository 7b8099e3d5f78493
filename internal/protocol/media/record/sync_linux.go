//go:build linux && (amd64 || arm64)

package record

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// syncData calls fdatasync(2).
func syncData(f *os.File) error {
	return withDescriptor(f, func(fd int) error { return os.NewSyscallError("fdatasync", syscall.Fdatasync(fd)) })
}

// syncDevice calls syncfs(2): one journal commit for all recordings instead of one each.
func syncDevice(f *os.File) error {
	nr := uintptr(306)
	if runtime.GOARCH == "arm64" {
		nr = 267
	}
	return withDescriptor(f, func(fd int) error {
		if _, _, errno := syscall.Syscall(nr, uintptr(fd), 0, 0); errno != 0 {
			return os.NewSyscallError("syncfs", errno)
		}
		return nil
	})
}

// withDescriptor calls do with the file descriptor. A file that was closed meanwhile is no error, because closing a
// recording syncs it.
func withDescriptor(f *os.File, do func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return fmt.Errorf("sync %s: %w", f.Name(), err)
	}
	var result error
	if err := c.Control(func(fd uintptr) { result = do(int(fd)) }); err != nil {
		return nil
	}
	return result
}

func deviceOf(f *os.File) uint64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return uint64(st.Dev)
}
