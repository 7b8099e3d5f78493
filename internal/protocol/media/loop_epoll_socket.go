//go:build linux && (amd64 || arm64)

package media

import (
	"net/netip"
	"sync"
	"syscall"
	"unsafe"
)

// epollSocket is a UDP socket of an epollLoop. It uses raw system calls, because none of them blocks and the Go
// scheduler need not be informed. It allocates nothing.
type epollSocket struct {
	loop  *epollLoop
	fd    int
	inet6 bool
	to    receiver

	mu     sync.Mutex // held while a packet is read and handled, so that close waits
	closed bool

	dest    netip.AddrPort           // the address in sa
	sa      syscall.RawSockaddrInet6 // destination in the kernel's format
	saBytes uintptr
}

// read handles one packet. epoll is level-triggered: remaining packets are reported again.
func (s *epollSocket) read(l *epollLoop, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed { // the descriptor number may belong to another file by now
		return
	}
	size := uint32(unsafe.Sizeof(l.from))
	n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(&l.buf[0])), maxPacket,
		syscall.MSG_DONTWAIT, uintptr(unsafe.Pointer(&l.from)), uintptr(unsafe.Pointer(&size)))
	if errno != 0 {
		return
	}
	s.to.receive(l.buf[:n], addrPort(&l.from), now)
}

// addrPort converts a sockaddr_in or sockaddr_in6.
func addrPort(sa *syscall.RawSockaddrInet6) netip.AddrPort {
	p := (*[2]byte)(unsafe.Pointer(&sa.Port))
	port := uint16(p[0])<<8 | uint16(p[1])
	if sa.Family == syscall.AF_INET {
		return netip.AddrPortFrom(netip.AddrFrom4((*syscall.RawSockaddrInet4)(unsafe.Pointer(sa)).Addr), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), port)
}

func (s *epollSocket) send(b []byte, to netip.AddrPort) bool {
	if len(b) == 0 || !s.setDestination(to) {
		return false
	}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(s.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
		syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, uintptr(unsafe.Pointer(&s.sa)), s.saBytes)
	return errno == 0
}

// setDestination converts the destination into the kernel's format. The result is cached between packets. It returns
// false if the socket cannot send there.
func (s *epollSocket) setDestination(to netip.AddrPort) bool {
	if to == s.dest {
		return s.saBytes != 0
	}
	s.dest, s.saBytes = to, 0
	if !to.IsValid() || !s.inet6 && !to.Addr().Is4() {
		return false
	}
	p := (*[2]byte)(unsafe.Pointer(&s.sa.Port)) // the port has the same offset in both formats
	p[0], p[1] = byte(to.Port()>>8), byte(to.Port())
	if s.inet6 {
		s.sa.Family, s.sa.Addr, s.saBytes = syscall.AF_INET6, to.Addr().As16(), syscall.SizeofSockaddrInet6
		return true
	}
	sa4 := (*syscall.RawSockaddrInet4)(unsafe.Pointer(&s.sa))
	sa4.Family, sa4.Addr, s.saBytes = syscall.AF_INET, to.Addr().As4(), syscall.SizeofSockaddrInet4
	return true
}

func (s *epollSocket) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	_ = s.loop.table.set(s.fd, nil)
	_ = syscall.Close(s.fd) // also removes it from the epoll set
}
