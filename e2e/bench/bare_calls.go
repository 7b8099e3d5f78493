package main

import (
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Measures the minimum cost of a call. Each SIP message is forwarded unchanged. Four sockets for audio are opened at
// the INVITE and closed at the BYE. A record is on the disk before the response to the BYE goes out; many records
// share one sync. This is the lower bound for every server that relays media and keeps call records.

const floor = "bare packets, sockets and record"

// bareRecord is the number of bytes written for a call: about its record and three events.
const bareRecord = 2048

// barePassing starts the process, which forwards messages to the callee of sipp's calls, and returns it as a subject.
func (b *bench) barePassing() (subject, error) {
	self, err := os.Executable()
	if err != nil {
		return subject{}, err
	}
	p, err := start(b.dir, self, "-bare-calls", fmt.Sprintf("127.0.0.1:%d", calleePort), filepath.Join(b.dir, "bare.records"))
	if err != nil {
		return subject{}, err
	}
	select {
	case address := <-p.lines:
		return subject{floor, address, []*process{p}}, nil
	case err := <-p.exited:
		return subject{}, fmt.Errorf("%s ended: %w", floor, err)
	}
}

// passing holds the state of that process.
type passing struct {
	poll, front, back int
	caller            unix.Sockaddr
	media             map[string][4]int // sockets by Call-ID
	records           *os.File
	ended             int      // calls whose record is not on the disk yet
	held              [][]byte // responses held back until it is
}

// beBareCalls forwards messages until it gets a signal.
func beBareCalls(callee, records string, out io.Writer) (err error) {
	p := &passing{media: map[string][4]int{}}
	if p.poll, err = unix.EpollCreate1(0); err != nil {
		return err
	}
	if p.records, err = os.Create(records); err != nil {
		return err
	}
	if p.back, err = bareSocket(p.poll, callee, io.Discard); err != nil {
		return err
	}
	if p.front, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	if err = unix.Bind(p.front, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	own, err := unix.Getsockname(p.front)
	if err != nil {
		return err
	}
	a := own.(*unix.SockaddrInet4)
	if _, err = fmt.Fprintln(out, netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))); err != nil {
		return err
	}
	if err = unix.EpollCtl(p.poll, unix.EPOLL_CTL_ADD, p.front, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(p.front)}); err != nil {
		return err
	}
	return p.pass()
}

func (p *passing) pass() error {
	events, b := make([]unix.EpollEvent, 2), make([]byte, 4096)
	for {
		n, err := unix.EpollWait(p.poll, events, -1)
		if err != nil && err != unix.EINTR {
			return err
		}
		for _, e := range events[:max(n, 0)] {
			for { // reads everything that has arrived
				size, from, err := unix.Recvfrom(int(e.Fd), b, 0)
				if err != nil {
					break
				}
				if int(e.Fd) == p.front {
					p.caller = from
					err = p.forth(b[:size])
				} else {
					p.backTo(b[:size])
				}
				if err != nil {
					return err
				}
			}
		}
		if err := p.write(); err != nil {
			return err
		}
	}
}

// forth forwards a message of the caller.
func (p *passing) forth(b []byte) error {
	switch {
	case bytes.HasPrefix(b, []byte("INVITE ")):
		id := callID(b)
		if _, again := p.media[id]; !again {
			var four [4]int
			for i := range four {
				fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
				if err != nil {
					return err
				}
				if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
					return err
				}
				four[i] = fd
			}
			p.media[id] = four
		}
	case bytes.HasPrefix(b, []byte("BYE ")):
		id := callID(b)
		if four, ok := p.media[id]; ok {
			for _, fd := range four {
				_ = unix.Close(fd)
			}
			delete(p.media, id)
			p.ended++
		}
	}
	_, _ = unix.Write(p.back, b)
	return nil
}

// backTo forwards a message of the callee. It sends the response to a BYE when the record is on the disk.
func (p *passing) backTo(b []byte) {
	if bytes.Contains(b, []byte(" BYE\r\n")) {
		p.held = append(p.held, bytes.Clone(b))
		return
	}
	_ = unix.Sendto(p.front, b, 0, p.caller)
}

// write syncs the records of ended calls to the disk, and sends the responses held back for them.
func (p *passing) write() error {
	if p.ended == 0 && len(p.held) == 0 {
		return nil
	}
	if p.ended > 0 {
		if _, err := p.records.Write(make([]byte, p.ended*bareRecord)); err != nil {
			return err
		}
		if err := unix.Fdatasync(int(p.records.Fd())); err != nil {
			return err
		}
	}
	for _, b := range p.held {
		_ = unix.Sendto(p.front, b, 0, p.caller)
	}
	p.ended, p.held = 0, p.held[:0]
	return nil
}

// callID returns the value of the Call-ID header in the spelling of sipp.
func callID(b []byte) string {
	_, rest, _ := bytes.Cut(b, []byte("\r\nCall-ID: "))
	id, _, _ := bytes.Cut(rest, []byte("\r\n"))
	return string(id)
}
