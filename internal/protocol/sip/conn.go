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

// Connection (TCP, TLS, WebSocket): write queue, time-outs, limits, failure of its transactions.

// Deadlines of a connection. A message must be complete soon after it began. Between messages, a phone with
// keep-alives is never idle as long as trustedIdleTimeout. Sources that have not proved to be a phone or a trunk get
// less time.
const (
	dialLimit     = 3 * time.Second
	messageLimit  = 10 * time.Second
	idleLimit     = 20 * time.Minute
	strangerLimit = time.Minute
	writeLimit    = 10 * time.Second
)

// Limits of the bytes that wait to be written. A peer that reads nothing is disconnected by writeTimeout. A trusted
// peer that sends thousands of requests at once is answered faster than its connection transfers, so its limit is
// high.
const (
	backlogLimit    = 16 << 20
	strangerBacklog = 1 << 20
)

// conn is one connection: TCP, TLS or WebSocket. Writing to it never blocks.
type conn struct {
	srv   *Server
	id    uint64
	key   connKey
	login string                         // user name of the token that connected; "" for none
	here  atomic.Pointer[netip.AddrPort] // local address, once connected
	ours  bool                           // this server connected
	known atomic.Bool                    // a phone authenticated over it, or it is ours, or a trunk's
	spoke bool                           // a message arrived; used by the reader only

	mu     sync.Mutex // guards the fields below
	ch     channel    // nil while connecting
	out    []byte     // waiting to be written
	ends   []int      // ends of the messages in pending
	dead   bool
	wakeup chan struct{}
}

// connKey identifies a connection in the connTable. name is the verified name of the peer's certificate; accepted
// connections have none.
type connKey struct {
	kind Transport
	addr netip.AddrPort
	name string
}

// connChannel transfers whole messages over one connection.
type channel interface {
	// serve passes every message to c until the connection ends.
	serve(c *conn)
	// write sends the messages in b; ends holds the end offset of each.
	write(b []byte, ends []int) error
	// close ends serve and write. It may be called more than once.
	close()
}

func newConn(s *Server, key connKey) *conn {
	return &conn{srv: s, id: newFlowID(), key: key, wakeup: make(chan struct{}, 1)}
}

// newClosedConn returns a connection that is already closed: sending over it fails.
func lostConn(s *Server, key connKey) *conn {
	c := newConn(s, key)
	c.dead = true
	return c
}

// transport returns the transport; UDP if c is nil.
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

// idleTimeout returns how long the connection may be silent between messages.
func (c *conn) patience() time.Duration {
	if c.known.Load() || c.srv.guard.trusted(c.key.addr.Addr(), c.srv.clock()) {
		return idleLimit
	}
	return strangerLimit
}

// untrustedMessageBytes is the largest message of a source that has not authenticated.
const strangerBytes = 16 << 10

// maxMessageBytes returns the size of the largest message that is accepted.
func (c *conn) largest() int {
	if c.known.Load() {
		return c.srv.limits.MessageBytes
	}
	return min(c.srv.limits.MessageBytes, strangerBytes)
}

// maxPendingBytes returns how many bytes may wait to be written.
func (c *conn) backlog() int {
	if c.known.Load() {
		return backlogLimit
	}
	return strangerBacklog
}

// countIfUnused counts a connection that ended without a message as a fruitless request.
func (c *conn) judge() {
	if !c.ours && !c.spoke {
		c.srv.suspect(c.key.addr.Addr(), c.key.kind)
	}
}

// write queues one message and never blocks. A peer that does not read is disconnected.
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

// closeAndFail closes the connection and fails the transactions that wait for it. Only the first call removes it from
// the connTable.
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

// failConnTxs fails the transactions of a closed connection.
func (s *shard) connLost(c *conn) {
	for tx := range s.waiting[c] {
		tx.lost(s)
	}
}

// dialAndServe makes the connection and serves it.
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

// attach sets the channel of the connection, unless it failed meanwhile.
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

// serve reads until the connection ends. A panic ends this connection only.
func (c *conn) serve() {
	defer c.fail()
	defer func() {
		if r := recover(); r != nil {
			c.srv.panicked(r, debug.Stack())
		}
	}()
	c.ch.serve(c)
}

// writeLoop is the only writer of the connection.
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

// addrPort converts a socket address. IPv4-mapped IPv6 becomes IPv4.
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

// setLocalAddr records the local address of the connection.
func (c *conn) at(local netip.AddrPort) { c.here.Store(&local) }

// localAddr returns the local address; zero before it is connected.
func (c *conn) local() netip.AddrPort {
	if p := c.here.Load(); p != nil {
		return *p
	}
	return netip.AddrPort{}
}
