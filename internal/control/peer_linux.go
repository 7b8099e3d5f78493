package control

import (
	"net"
	"strconv"
	"syscall"
)

// peerOf returns the user ID of the process at the other end of a Unix socket.
func peerOf(c net.Conn) (id string, ok bool) {
	unix, is := c.(*net.UnixConn)
	if !is {
		return "", false
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return "", false
	}
	err = raw.Control(func(fd uintptr) {
		if cred, failed := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); failed == nil {
			id, ok = strconv.FormatUint(uint64(cred.Uid), 10), true
		}
	})
	return id, ok && err == nil
}
