package transport

import (
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"soniq/internal/protocol/sip/guard"
	"soniq/internal/protocol/sip/sipmsg"
)

// Table of connections: accepting, connecting, limits per source.

// connTable holds every connection of a server, accepted or made.
type connTable struct {
	layer   *Layer
	serving sync.WaitGroup // the goroutines of connections

	mu       sync.Mutex // guards the fields below
	byKey    map[ConnKey]*Conn
	byID     map[uint64]*Conn
	bySource map[netip.Addr][]*Conn // accepted connections over which nobody authenticated, by source network, oldest first
	closed   bool
}

func newConnTable(l *Layer) *connTable {
	return &connTable{layer: l, byKey: make(map[ConnKey]*Conn), byID: make(map[uint64]*Conn), bySource: make(map[netip.Addr][]*Conn)}
}

// accept accepts connections until the listener is closed. With a configuration they are TLS.
func (t *connTable) accept(l *net.TCPListener, secure *tls.Config) {
	for {
		nc, err := l.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			if pause(t.layer.ctx, 10*time.Millisecond) != nil { // out of file descriptors
				return
			}
			continue
		}
		t.acceptConn(nc, secure)
	}
}

func (t *connTable) acceptConn(nc *net.TCPConn, secure *tls.Config) {
	c := NewConn(t.layer, ConnKey{Transport: sipmsg.TCP, Addr: addrPort(nc.RemoteAddr())})
	c.setLocalAddr(addrPort(nc.LocalAddr()))
	s := &streamChannel{nc: nc}
	if secure != nil {
		c.Key.Transport, s.nc = sipmsg.TLS, tls.Server(nc, secure)
	}
	c.channel = s
	if !t.admitConn(c, c.writeLoop, c.serve) {
		nc.Close()
	}
}

// admitConn adds an accepted connection, unless its source is banned or has too many.
func (t *connTable) admitConn(c *Conn, serve ...func()) bool {
	if !t.layer.config.Guard.MayConnect(c.Key.Addr.Addr(), t.layer.config.Host.Elapsed()) {
		t.layer.Stats.Dropped.Add(1)
		return false
	}
	return t.add(c, serve...)
}

// trustedFactor is how many times more connections without authentication a trusted source may have. Many phones may
// share its address, and all may connect at once.
const trustedFactor = 8

// add registers a connection and starts its goroutines, unless there are too many connections. At a trusted source the
// oldest one without authentication makes room.
func (t *connTable) add(c *Conn, serve ...func()) bool {
	ok, oldest := t.insert(c, serve)
	if oldest != nil {
		oldest.Close()
	}
	return ok
}

func (t *connTable) insert(c *Conn, serve []func()) (ok bool, oldest *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !c.WeConnected {
		if ok, oldest = t.roomAt(c.Key.Addr.Addr()); !ok {
			return false, nil
		}
	}
	if t.closed || len(t.byID) >= t.layer.config.Connections && oldest == nil {
		return false, nil
	}
	t.byID[c.ID] = c
	t.byKey[c.Key] = c
	if source := guard.Network(c.Key.Addr.Addr()); !c.WeConnected {
		t.bySource[source] = append(t.bySource[source], c)
	}
	for _, f := range serve {
		t.serving.Go(f)
	}
	return true, oldest
}

// roomAt reports whether a source may have another connection without authentication, and which one must end for it.
func (t *connTable) roomAt(a netip.Addr) (ok bool, oldest *Conn) {
	c, all := &t.layer.config, t.bySource[guard.Network(a)]
	switch {
	case len(all) < c.SourceConnections:
		return true, nil
	case !c.Guard.Trusted(a, c.Host.Elapsed()):
		return false, nil
	case len(all) < trustedFactor*c.SourceConnections:
		return true, nil
	}
	return true, all[0]
}

// forgetUnproved removes a connection from the limit of its source. The caller holds t.mu.
func (t *connTable) forgetUnproved(c *Conn) {
	source := guard.Network(c.Key.Addr.Addr())
	left := slices.DeleteFunc(t.bySource[source], func(x *Conn) bool { return x == c })
	if t.bySource[source] = left; len(left) == 0 {
		delete(t.bySource, source)
	}
}

// proved ends the limit of a connection over which a phone or trunk authenticated.
func (t *connTable) proved(c *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forgetUnproved(c)
}

// connTo returns the connection with exactly this key, or makes one. Messages written while it connects are queued.
func (t *connTable) connTo(key ConnKey) *Conn {
	t.mu.Lock()
	c := t.byKey[key]
	t.mu.Unlock()
	if c != nil && c.IsOpen() {
		return c
	}
	c = NewConn(t.layer, key)
	c.WeConnected = true
	c.Trusted.Store(true)
	if key.Transport.IsWebSocket() || !t.add(c, c.dialAndServe) {
		c.Close()
	}
	return c
}

// connByID returns the connection with an id, or nil.
func (t *connTable) connByID(id uint64) *Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

func (t *connTable) remove(c *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[c.ID] != c {
		return
	}
	delete(t.byID, c.ID)
	if t.byKey[c.Key] == c {
		delete(t.byKey, c.Key)
	}
	t.forgetUnproved(c)
}

func (t *connTable) openCount() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(len(t.byID))
}

// closeUntrusted closes the connections of a source over which no device authenticated.
func (t *connTable) closeUntrusted(source netip.Addr) {
	for _, c := range t.all() {
		if guard.Network(c.Key.Addr.Addr()) == source && !c.Trusted.Load() {
			c.Close()
		}
	}
}

// closeToken closes the connections that a token of an account authorised.
func (t *connTable) closeToken(account string) {
	for _, c := range t.all() {
		if c.Token.Username != "" && c.Token.Username == account {
			c.Close()
		}
	}
}

func (t *connTable) all() []*Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*Conn, 0, len(t.byID))
	for _, c := range t.byID {
		all = append(all, c)
	}
	return all
}

// close closes every connection.
func (t *connTable) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	for _, c := range t.all() {
		c.Close()
	}
}

// newFlowID returns a random id. It is never 0 and differs between processes.
func newFlowID() uint64 { return rand.Uint64() | 1 }
