package sip

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// pendingDatagrams reports whether a UDP socket holds further datagrams.
type remainder struct {
	raw   syscall.RawConn
	look  func(fd uintptr) // made once
	bytes int
	err   error
}

func newRemainder(conn *net.UDPConn) *remainder {
	r := &remainder{}
	if r.raw, r.err = conn.SyscallConn(); r.err == nil {
		r.look = func(fd uintptr) { r.bytes, r.err = unix.IoctlGetInt(int(fd), unix.SIOCINQ) }
	}
	return r
}

// nextSize returns the size of the next datagram, 0 if there is none (udp(7), SIOCINQ).
func (r *remainder) ask() (bytes int, ok bool) {
	if r.look == nil || r.raw.Control(r.look) != nil {
		return 0, false
	}
	return r.bytes, r.err == nil
}
