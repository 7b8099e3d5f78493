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
type streams struct {
	srv     *Server
	serving sync.WaitGroup // the goroutines of connections

	mu       sync.Mutex // guards the fields below
	byKey    map[connKey]*conn
	byID     map[uint64]*conn
	bySource map[netip.Addr]int // accepted connections per source network
	closed   bool
}

func newStreams(s *Server) *streams {
	return &streams{srv: s, byKey: make(map[connKey]*conn), byID: make(map[uint64]*conn), bySource: make(map[netip.Addr]int)}
}

// accept accepts connections until the listener is closed. With a configuration they are TLS.
func (t *streams) accept(l *net.TCPListener, secure *tls.Config) {
	for {
		nc, err := l.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			if pause(t.srv.ctx, 10*time.Millisecond) != nil { // out of file descriptors
				return
			}
			continue
		}
		t.take(nc, secure)
	}
}

func (t *streams) take(nc *net.TCPConn, secure *tls.Config) {
	c := newConn(t.srv, connKey{kind: TCP, addr: addrPort(nc.RemoteAddr())})
	c.at(addrPort(nc.LocalAddr()))
	s := &stream{nc: nc}
	if secure != nil {
		c.key.kind, s.nc = TLS, tls.Server(nc, secure)
	}
	c.ch = s
	if !t.admit(c, c.write1, c.serve) {
		nc.Close()
	}
}

// admitConn adds an accepted connection, unless its source is banned or has too many.
func (t *streams) admit(c *conn, serve ...func()) bool {
	if !t.srv.guard.mayConnect(c.key.addr.Addr(), t.srv.clock()) {
		t.srv.stats.dropped.Add(1)
		return false
	}
	return t.add(c, serve...)
}

// add registers a connection and starts its goroutines, unless there are too many connections.
func (t *streams) add(c *conn, serve ...func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.byID) >= t.srv.limits.Connections || !c.ours && t.crowded(c.key.addr.Addr()) {
		return false
	}
	t.byID[c.id] = c
	t.byKey[c.key] = c
	if !c.ours {
		t.bySource[network(c.key.addr.Addr())]++
	}
	for _, f := range serve {
		t.serving.Go(f)
	}
	return true
}

// sourceFull reports whether a source has reached its limit of connections. A trusted source has none, because many
// phones may share its address.
func (t *streams) crowded(a netip.Addr) bool {
	return t.bySource[network(a)] >= t.srv.limits.SourceConnections && !t.srv.guard.trusted(a, t.srv.clock())
}

// connTo returns the connection with exactly this key, or makes one. Messages written while it connects are queued.
func (t *streams) to(key connKey) *conn {
	t.mu.Lock()
	c := t.byKey[key]
	t.mu.Unlock()
	if c != nil && c.open() {
		return c
	}
	c = newConn(t.srv, key)
	c.ours = true
	c.known.Store(true)
	if key.kind.web() || !t.add(c, c.connect) {
		c.fail()
	}
	return c
}

// connByID returns the connection with an id, or nil.
func (t *streams) flow(id uint64) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

func (t *streams) remove(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[c.id] != c {
		return
	}
	delete(t.byID, c.id)
	if t.byKey[c.key] == c {
		delete(t.byKey, c.key)
	}
	if source := network(c.key.addr.Addr()); !c.ours {
		if t.bySource[source]--; t.bySource[source] <= 0 {
			delete(t.bySource, source)
		}
	}
}

func (t *streams) open() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(len(t.byID))
}

// closeUntrusted closes the connections of a source over which no device authenticated.
func (t *streams) cut(source netip.Addr) {
	for _, c := range t.all() {
		if network(c.key.addr.Addr()) == source && !c.known.Load() {
			c.fail()
		}
	}
}

func (t *streams) all() []*conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*conn, 0, len(t.byID))
	for _, c := range t.byID {
		all = append(all, c)
	}
	return all
}

// close closes every connection and waits for their goroutines.
func (t *streams) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	for _, c := range t.all() {
		c.fail()
	}
	for _, sh := range t.srv.shards {
		sh.close() // a reader may wait for space in the queue
	}
	t.serving.Wait()
}

// newFlowID returns a random id. It is never 0 and differs between processes.
func newFlowID() uint64 { return rand.Uint64() | 1 }
