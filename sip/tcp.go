package sip

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"
)

// tcpSide is every TCP connection of a server, accepted or dialled.
type tcpSide struct {
	srv      *Server
	listener *net.TCPListener
	conns    sync.WaitGroup // their goroutines

	mu     sync.Mutex // guards what follows
	byAddr map[netip.AddrPort]*conn
	byID   map[uint64]*conn
	closed bool
}

func newTCPSide(s *Server, l *net.TCPListener) *tcpSide {
	return &tcpSide{srv: s, listener: l, byAddr: make(map[netip.AddrPort]*conn), byID: make(map[uint64]*conn)}
}

// accept takes connections until the listener is closed.
func (t *tcpSide) accept() {
	for {
		nc, err := t.listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			if pause(t.srv.ctx, 10*time.Millisecond) != nil { // out of file descriptors
				return
			}
			continue
		}
		addr := nc.RemoteAddr().(*net.TCPAddr).AddrPort()
		c := newConn(t.srv, netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port()))
		c.nc = nc
		if !t.add(c, c.write1, c.read) {
			nc.Close()
		}
	}
}

// add registers a connection and starts what serves it, unless there are too
// many.
func (t *tcpSide) add(c *conn, serve ...func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.byID) >= t.srv.limits.Connections {
		return false
	}
	t.byID[c.id] = c
	t.byAddr[c.remote] = c
	for _, f := range serve {
		t.conns.Go(f)
	}
	return true
}

// to returns the connection with exactly this remote address and dials one
// when there is none. What is written meanwhile waits.
func (t *tcpSide) to(addr netip.AddrPort) *conn {
	t.mu.Lock()
	c := t.byAddr[addr]
	t.mu.Unlock()
	if c != nil && c.open() {
		return c
	}
	c = newConn(t.srv, addr)
	if !t.add(c, c.dial) {
		c.fail()
	}
	return c
}

// flow finds a connection by its id.
func (t *tcpSide) flow(id uint64) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

func (t *tcpSide) remove(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byID, c.id)
	if t.byAddr[c.remote] == c {
		delete(t.byAddr, c.remote)
	}
}

func (t *tcpSide) open() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(len(t.byID))
}

// close ends every connection and waits for their goroutines.
func (t *tcpSide) close() {
	t.listener.Close()
	t.mu.Lock()
	t.closed = true
	all := make([]*conn, 0, len(t.byID))
	for _, c := range t.byID {
		all = append(all, c)
	}
	t.mu.Unlock()
	for _, c := range all {
		c.fail()
	}
	for _, sh := range t.srv.shards {
		sh.close() // a reader may be waiting for room
	}
	t.conns.Wait()
}

// newFlowID is never 0 and differs between runs.
func newFlowID() uint64 { return rand.Uint64() | 1 }
