package db

import (
	"os"
	"syscall"
)

// syncData is fdatasync(2): the data, and of the file's own data what is needed to read it again.
func syncData(f *os.File) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := c.Control(func(fd uintptr) { result = os.NewSyscallError("fdatasync", syscall.Fdatasync(int(fd))) }); err != nil {
		return err
	}
	return result
}
