package db

import (
	"os"
	"syscall"
)

// syncData calls fdatasync(2): the data, and only the metadata needed to read it.
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
