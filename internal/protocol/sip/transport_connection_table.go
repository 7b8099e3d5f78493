package sip

import (
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Table of connections: accepting, connecting, limits per source.

// connTable holds every connection of a server, accepted or made.
type connTable struct {
	srv     *Server
	serving sync.WaitGroup // the goroutines of connections

	mu       sync.Mutex // guards the fields below
	byKey    map[connKey]*conn
	byID     map[uint64]*conn
	bySource map[netip.Addr]int // accepted connections per source network
	closed   bool
}

func newConnTable(s *Server) *connTable {
	return &connTable{srv: s, byKey: make(map[connKey]*conn), byID: make(map[uint64]*conn), bySource: make(map[netip.Addr]int)}
}

// accept accepts connections until the listener is closed. With a configuration they are TLS.
func (t *connTable) accept(l *net.TCPListener, secure *tls.Config) {
	for {
		nc, err := l.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			if sleepContext(t.srv.ctx, 10*time.Millisecond) != nil { // out of file descriptors
				return
			}
			continue
		}
		t.acceptConn(nc, secure)
	}
}

func (t *connTable) acceptConn(nc *net.TCPConn, secure *tls.Config) {
	c := newConn(t.srv, connKey{transport: TCP, addr: addrPort(nc.RemoteAddr())})
	c.setLocalAddr(addrPort(nc.LocalAddr()))
	s := &streamChannel{nc: nc}
	if secure != nil {
		c.key.transport, s.nc = TLS, tls.Server(nc, secure)
	}
	c.channel = s
	if !t.admitConn(c, c.writeLoop, c.serve) {
		nc.Close()
	}
}

// admitConn adds an accepted connection, unless its source is banned or has too many.
func (t *connTable) admitConn(c *conn, serve ...func()) bool {
	if !t.srv.guard.mayConnect(c.key.addr.Addr(), t.srv.clock()) {
		t.srv.stats.dropped.Add(1)
		return false
	}
	return t.add(c, serve...)
}

// add registers a connection and starts its goroutines, unless there are too many connections.
func (t *connTable) add(c *conn, serve ...func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.byID) >= t.srv.limits.Connections || !c.weConnected && t.sourceFull(c.key.addr.Addr()) {
		return false
	}
	t.byID[c.id] = c
	t.byKey[c.key] = c
	if !c.weConnected {
		t.bySource[sourceNetwork(c.key.addr.Addr())]++
	}
	for _, f := range serve {
		t.serving.Go(f)
	}
	return true
}

// sourceFull reports whether a source has reached its limit of connections. A trusted source has none, because many
// phones may share its address.
func (t *connTable) sourceFull(a netip.Addr) bool {
	return t.bySource[sourceNetwork(a)] >= t.srv.limits.SourceConnections && !t.srv.guard.trusted(a, t.srv.clock())
}

// connTo returns the connection with exactly this key, or makes one. Messages written while it connects are queued.
func (t *connTable) connTo(key connKey) *conn {
	t.mu.Lock()
	c := t.byKey[key]
	t.mu.Unlock()
	if c != nil && c.isOpen() {
		return c
	}
	c = newConn(t.srv, key)
	c.weConnected = true
	c.trusted.Store(true)
	if key.transport.isWebSocket() || !t.add(c, c.dialAndServe) {
		c.closeAndFail()
	}
	return c
}

// connByID returns the connection with an id, or nil.
func (t *connTable) connByID(id uint64) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

func (t *connTable) remove(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[c.id] != c {
		return
	}
	delete(t.byID, c.id)
	if t.byKey[c.key] == c {
		delete(t.byKey, c.key)
	}
	if source := sourceNetwork(c.key.addr.Addr()); !c.weConnected {
		if t.bySource[source]--; t.bySource[source] <= 0 {
			delete(t.bySource, source)
		}
	}
}

func (t *connTable) openCount() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(len(t.byID))
}

// closeUntrusted closes the connections of a source over which no device authenticated.
func (t *connTable) closeUntrusted(source netip.Addr) {
	for _, c := range t.all() {
		if sourceNetwork(c.key.addr.Addr()) == source && !c.trusted.Load() {
			c.closeAndFail()
		}
	}
}

func (t *connTable) all() []*conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*conn, 0, len(t.byID))
	for _, c := range t.byID {
		all = append(all, c)
	}
	return all
}

// close closes every connection and waits for their goroutines.
func (t *connTable) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	for _, c := range t.all() {
		c.closeAndFail()
	}
	for _, sh := range t.srv.shards {
		sh.close() // a reader may wait for space in the queue
	}
	t.serving.Wait()
}

// newFlowID returns a random id. It is never 0 and differs between processes.
func newFlowID() uint64 { return rand.Uint64() | 1 }
