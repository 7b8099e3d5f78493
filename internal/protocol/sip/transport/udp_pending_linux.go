package transport

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// pendingDatagrams reports whether a UDP socket holds further datagrams.
type pendingDatagrams struct {
	raw   syscall.RawConn
	query func(fd uintptr) // made once
	size  int
	err   error
}

func newPendingDatagrams(conn *net.UDPConn) *pendingDatagrams {
	r := &pendingDatagrams{}
	if r.raw, r.err = conn.SyscallConn(); r.err == nil {
		r.query = func(fd uintptr) { r.size, r.err = unix.IoctlGetInt(int(fd), unix.SIOCINQ) }
	}
	return r
}

// nextSize returns the size of the next datagram, 0 if there is none (udp(7), SIOCINQ).
func (r *pendingDatagrams) nextSize() (bytes int, ok bool) {
	if r.query == nil || r.raw.Control(r.query) != nil {
		return 0, false
	}
	return r.size, r.err == nil
}
