package sip

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// remainder asks what else a UDP socket holds.
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

// ask returns the bytes of the next datagram, 0 where there is none (udp(7), SIOCINQ).
func (r *remainder) ask() (bytes int, ok bool) {
	if r.look == nil || r.raw.Control(r.look) != nil {
		return 0, false
	}
	return r.bytes, r.err == nil
}
