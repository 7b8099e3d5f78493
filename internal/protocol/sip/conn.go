package sip

import (
	"context"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Deadlines of a connection. A message must be complete soon after it began;
// between messages a phone with keep-alives is never idle this long. Who has
// not shown to be a phone or a trunk is given less.
const (
	dialLimit     = 3 * time.Second
	messageLimit  = 10 * time.Second
	idleLimit     = 20 * time.Minute
	strangerLimit = time.Minute
	writeLimit    = 10 * time.Second
)

// Bytes that may wait to be written: a peer that reads nothing is cut off by writeLimit, and one that sends thousands of requests at once
// is answered faster than its connection takes it.
const (
	backlogLimit    = 16 << 20
	strangerBacklog = 1 << 20
)

// conn is one connection: TCP, TLS or WebSocket. Nobody who writes to it ever
// waits.
type conn struct {
	srv   *Server
	id    uint64
	key   connKey
	login string                         // of the account whose token connected; "" for none
	here  atomic.Pointer[netip.AddrPort] // our end, once connected
	ours  bool                           // we connected
	known atomic.Bool                    // a phone logged in over it, or it is ours, or a trunk's
	spoke bool                           // a message came; belongs to who reads

	mu     sync.Mutex // guards what follows
	ch     channel    // nil while connecting
	out    []byte     // waiting to be written
	ends   []int      // where the messages in out end
	dead   bool
	wakeup chan struct{}
}

// connKey is what a connection is found by. name is what the certificate of
// the other side was held against; connections that were accepted have none.
type connKey struct {
	kind Transport
	addr netip.AddrPort
	name string
}

// channel moves whole messages over one connection.
type channel interface {
	// serve hands every message to c until the connection ends.
	serve(c *conn)
	// write sends the messages in b; ends are where each ends.
	write(b []byte, ends []int) error
	// close ends serve and write; it may be called more than once.
	close()
}

func newConn(s *Server, key connKey) *conn {
	return &conn{srv: s, id: newFlowID(), key: key, wakeup: make(chan struct{}, 1)}
}

// lostConn is a connection that is gone: what is sent over it fails.
func lostConn(s *Server, key connKey) *conn {
	c := newConn(s, key)
	c.dead = true
	return c
}

// transport is UDP without a connection.
func (c *conn) transport() Transport {
	if c == nil {
		return UDP
	}
	return c.key.kind
}

func (c *conn) flow() flow { return flow{addr: c.key.addr, conn: c} }

func (c *conn) open() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.dead
}

// patience is how long the connection may be silent between messages.
func (c *conn) patience() time.Duration {
	if c.known.Load() || c.srv.guard.trusted(c.key.addr.Addr(), c.srv.clock()) {
		return idleLimit
	}
	return strangerLimit
}

// strangerBytes is the largest message of who has not logged in.
const strangerBytes = 16 << 10

// largest is the largest message the connection may carry.
func (c *conn) largest() int {
	if c.known.Load() {
		return c.srv.limits.MessageBytes
	}
	return min(c.srv.limits.MessageBytes, strangerBytes)
}

// backlog is how many bytes may wait to be written.
func (c *conn) backlog() int {
	if c.known.Load() {
		return backlogLimit
	}
	return strangerBacklog
}

// judge counts a connection that came to nothing.
func (c *conn) judge() {
	if !c.ours && !c.spoke {
		c.srv.suspect(c.key.addr.Addr(), c.key.kind)
	}
}

// write queues one message. A peer that does not read is cut off.
func (c *conn) write(b []byte) {
	c.mu.Lock()
	tooMuch := len(c.out)+len(b) > c.backlog()
	if !c.dead && !tooMuch {
		c.out = append(c.out, b...)
		c.ends = append(c.ends, len(c.out))
	}
	dead := c.dead
	c.mu.Unlock()
	if tooMuch || dead {
		c.fail()
		return
	}
	c.ring()
}

func (c *conn) ring() {
	select {
	case c.wakeup <- struct{}{}:
	default:
	}
}

// fail closes the connection, once, and fails what waits for it.
func (c *conn) fail() {
	c.mu.Lock()
	first := !c.dead
	c.dead, c.out, c.ends = true, nil, nil
	ch := c.ch
	c.mu.Unlock()
	if ch != nil {
		ch.close()
	}
	c.ring()
	if first {
		c.srv.streams.remove(c)
	}
	for _, sh := range c.srv.shards {
		sh.post(func(s *shard) { s.connLost(c) })
	}
}

// connLost fails the transactions that went over a connection.
func (s *shard) connLost(c *conn) {
	for tx := range s.waiting[c] {
		tx.lost(s)
	}
}

// connect makes the connection and serves it.
func (c *conn) connect() {
	ctx, cancel := context.WithTimeout(c.srv.ctx, dialLimit)
	nc, err := c.srv.dialStream(ctx, c.key)
	cancel()
	if err != nil {
		c.srv.dead.note(c.key.kind, c.key.addr, c.srv.clock())
		c.fail()
		return
	}
	c.at(addrPort(nc.LocalAddr()))
	if !c.attach(&stream{nc: nc}) {
		return
	}
	c.srv.streams.serving.Go(c.write1)
	c.serve()
}

// attach gives the connection its channel, unless it failed meanwhile.
func (c *conn) attach(ch channel) bool {
	c.mu.Lock()
	c.ch = ch
	dead := c.dead
	c.mu.Unlock()
	if dead {
		ch.close()
	}
	return !dead
}

// serve reads until the connection ends; a panic costs the connection and
// nothing else.
func (c *conn) serve() {
	defer c.fail()
	defer func() {
		if r := recover(); r != nil {
			c.srv.panicked(r, debug.Stack())
		}
	}()
	c.ch.serve(c)
}

// write1 is the one writer.
func (c *conn) write1() {
	var spare []byte
	var spareEnds []int
	for range c.wakeup {
		c.mu.Lock()
		b, ends, dead := c.out, c.ends, c.dead
		c.out, c.ends = spare[:0], spareEnds[:0]
		c.mu.Unlock()
		if dead {
			return
		}
		if len(b) > 0 {
			if err := c.ch.write(b, ends); err != nil {
				c.fail()
				return
			}
		}
		if spare, spareEnds = b, ends; cap(spare) > 64<<10 {
			spare, spareEnds = nil, nil
		}
	}
}

// addrPort is a socket address without the mapping of IPv4 into IPv6.
func addrPort(a net.Addr) netip.AddrPort {
	var p netip.AddrPort
	switch a := a.(type) {
	case *net.TCPAddr:
		p = a.AddrPort()
	case *net.UDPAddr:
		p = a.AddrPort()
	}
	return unmapped(p)
}

func unmapped(p netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(p.Addr().Unmap(), p.Port()) }

// at notes our end of the connection.
func (c *conn) at(local netip.AddrPort) { c.here.Store(&local) }

// local is our end of the connection; zero before it is connected.
func (c *conn) local() netip.AddrPort {
	if p := c.here.Load(); p != nil {
		return *p
	}
	return netip.AddrPort{}
}
