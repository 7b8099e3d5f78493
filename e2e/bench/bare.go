package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Measures the cost of the same packets in a process that only receives and sends them: the lower bound for every
// relay with a socket for each side of a call. The process is this program, started again with -bare.

// bare measures the audio of n calls through a process that only receives and sends.
func (b *bench) bare(n int, d time.Duration) (r relayed, err error) {
	left, right, all, p, err := b.bareCalls(n)
	defer func() {
		if p != nil {
			p.stop()
		}
	}()
	if err != nil {
		return r, err
	}
	used := make(chan time.Duration, 1)
	go func() { // as relay measures
		<-time.After(time.Second)
		begun := cpu(p)
		<-time.After(d - 2*time.Second)
		used <- cpu(p) - begun
	}()
	r.Sent = play(all, d)
	r.CPU = 100 * (<-used).Seconds() / (d - 2*time.Second).Seconds() / float64(n)
	<-time.After(200 * time.Millisecond)
	r.measure(append(left.close(), right.close()...))
	return r, nil
}

// bareCalls starts the process and passes it the addresses of both sides of each call.
func (b *bench) bareCalls(n int) (left, right *orchestra, all []stream, p *process, err error) {
	if left, err = newOrchestra(carrierIP); err != nil {
		return
	}
	if right, err = newOrchestra("127.0.0.1"); err != nil {
		return
	}
	self, err := os.Executable()
	if err != nil {
		return
	}
	args := []string{"-bare"}
	var from []*net.UDPConn
	for range n {
		for _, o := range []*orchestra{left, right} {
			seat, address := o.seat()
			from = append(from, o.sockets[seat])
			args = append(args, address.String())
		}
	}
	if p, err = start(b.dir, self, args...); err != nil {
		return
	}
	for _, c := range from {
		select {
		case line := <-p.lines:
			var to netip.AddrPort
			if to, err = netip.ParseAddrPort(line); err != nil {
				return
			}
			all = append(all, stream{c, to})
		case err = <-p.exited:
			return left, right, all, p, fmt.Errorf("bare relay ended: %w", err)
		}
	}
	return
}

// beBare is the main function of that process. For each two addresses it prints two of its own, and forwards packets from the one to the
// other. It ends with its input, or with a signal.
func beBare(sides []string, out io.Writer) error {
	poll, err := unix.EpollCreate1(0)
	if err != nil {
		return err
	}
	across := map[int32]int{}
	w := bufio.NewWriter(out)
	for i := 0; i+1 < len(sides); i += 2 {
		var pair [2]int
		for k := range pair {
			if pair[k], err = bareSocket(poll, sides[i+k], w); err != nil {
				return err
			}
		}
		across[int32(pair[0])], across[int32(pair[1])] = pair[1], pair[0]
	}
	if err := w.Flush(); err != nil {
		return err
	}
	events, b := make([]unix.EpollEvent, 128), make([]byte, 2048)
	for {
		n, err := unix.EpollWait(poll, events, -1)
		if err != nil && err != unix.EINTR {
			return err
		}
		for _, e := range events[:max(n, 0)] {
			if size, err := unix.Read(int(e.Fd), b); err == nil {
				_, _ = unix.Write(across[e.Fd], b[:size])
			}
		}
	}
}

// bareSocket opens a socket that is connected with an address, and prints its own.
func bareSocket(poll int, to string, w io.Writer) (int, error) {
	far, err := netip.ParseAddrPort(to)
	if err != nil {
		return 0, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err = unix.Connect(fd, &unix.SockaddrInet4{Addr: far.Addr().As4(), Port: int(far.Port())}); err != nil {
		return 0, err
	}
	own, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	a := own.(*unix.SockaddrInet4)
	if _, err = fmt.Fprintln(w, netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))); err != nil {
		return 0, err
	}
	return fd, unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}
