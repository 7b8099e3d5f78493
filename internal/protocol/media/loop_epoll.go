//go:build linux && (amd64 || arm64)

package media

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// loopNice is the requested nice value of loop threads: above ordinary threads, below real time.
const loopNice = -10

// epollLoop reads its sockets from one locked OS thread. Compared to the runtime's poller it saves a goroutine switch
// per packet, about half the cost of a relay.
type epollLoop struct {
	epfd, wakefd int
	clock        func() int64
	table        fdTable
	done         chan struct{}

	buf  [maxPacket]byte
	from syscall.RawSockaddrInet6 // also holds the IPv4 form
}

// fdTable finds the socket of a file descriptor without a lock. It grows in pages, as descriptor numbers grow. Pages
// are never freed.
type fdTable struct {
	mu    sync.Mutex // guards the creation of pages
	pages [1024]atomic.Pointer[[1024]atomic.Pointer[epollSocket]]
}

func (t *fdTable) get(fd int) *epollSocket {
	if p := t.pages[fd>>10].Load(); p != nil {
		return p[fd&1023].Load()
	}
	return nil
}

func (t *fdTable) set(fd int, s *epollSocket) error {
	if fd>>10 >= len(t.pages) {
		return fmt.Errorf("descriptor %d: %w", fd, syscall.EMFILE)
	}
	page := &t.pages[fd>>10]
	t.mu.Lock()
	defer t.mu.Unlock()
	if page.Load() == nil {
		page.Store(new([1024]atomic.Pointer[epollSocket]))
	}
	page.Load()[fd&1023].Store(s)
	return nil
}

func newLoop(clock func() int64) (packetLoop, error) {
	epfd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create epoll: %w", err)
	}
	wake, _, errno := syscall.RawSyscall(syscall.SYS_EVENTFD2, 0, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		_ = syscall.Close(epfd)
		return nil, fmt.Errorf("create eventfd: %w", errno)
	}
	l := &epollLoop{epfd: epfd, wakefd: int(wake), clock: clock, done: make(chan struct{})}
	ev := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(wake)}
	if err := syscall.EpollCtl(epfd, syscall.EPOLL_CTL_ADD, int(wake), &ev); err != nil {
		l.free()
		return nil, fmt.Errorf("watch eventfd: %w", err)
	}
	go l.run()
	return l, nil
}

func (l *epollLoop) free() {
	_ = syscall.Close(l.epfd)
	_ = syscall.Close(l.wakefd)
}

func (l *epollLoop) close() {
	one := [8]byte{1}
	_, _ = syscall.Write(l.wakefd, one[:])
	<-l.done
	l.free()
}

func (l *epollLoop) run() {
	runtime.LockOSThread()
	// Audio gets a higher priority than the rest of the process, if the system permits it.
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, syscall.Gettid(), loopNice)
	defer close(l.done)
	events := make([]syscall.EpollEvent, 256)
	for {
		n, _, errno := syscall.Syscall6(syscall.SYS_EPOLL_PWAIT, uintptr(l.epfd),
			uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), ^uintptr(0), 0, 0)
		if errno != 0 {
			if errno == syscall.EINTR {
				continue
			}
			return // cannot happen: the descriptor belongs to the loop and is open
		}
		now := l.clock()
		for i := range int(n) {
			fd := int(events[i].Fd)
			if fd == l.wakefd {
				return
			}
			if s := l.table.get(fd); s != nil {
				s.read(l, now)
			}
		}
	}
}

func (l *epollLoop) listen(at netip.AddrPort, r receiver) (packetSocket, error) {
	fd, err := bindUDP(at)
	if err != nil {
		return nil, fmt.Errorf("listen for RTP at %v: %w", at, err)
	}
	s := &epollSocket{loop: l, fd: fd, inet6: at.Addr().Is6(), to: r}
	if err := l.watch(s); err != nil {
		_ = syscall.Close(fd)
		return nil, fmt.Errorf("listen for RTP at %v: %w", at, err)
	}
	return s, nil
}

func (l *epollLoop) watch(s *epollSocket) error {
	if err := l.table.set(s.fd, s); err != nil {
		return err
	}
	ev := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(s.fd)}
	return os.NewSyscallError("epoll_ctl", syscall.EpollCtl(l.epfd, syscall.EPOLL_CTL_ADD, s.fd, &ev))
}

func bindUDP(at netip.AddrPort) (int, error) {
	family, sa := syscall.AF_INET6, syscall.Sockaddr(&syscall.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()})
	if at.Addr().Is4() {
		family, sa = syscall.AF_INET, &syscall.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	fd, err := syscall.Socket(family, syscall.SOCK_DGRAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	_ = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_RCVBUF, receiveBuffer)
	// RFC 8837 §5: audio is marked EF. Not every kernel permits it; calls work without.
	_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, syscall.IP_TOS, 46<<2)
	if family == syscall.AF_INET6 {
		_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_IPV6, syscall.IPV6_TCLASS, 46<<2)
		_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_IPV6, syscall.IPV6_V6ONLY, 0)
	}
	if err := syscall.Bind(fd, sa); err != nil {
		_ = syscall.Close(fd)
		return -1, os.NewSyscallError("bind", err)
	}
	return fd, nil
}
