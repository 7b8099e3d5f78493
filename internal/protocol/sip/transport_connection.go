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
	dialTimeout          = 3 * time.Second
	messageTimeout       = 10 * time.Second
	trustedIdleTimeout   = 20 * time.Minute
	untrustedIdleTimeout = time.Minute
	writeTimeout         = 10 * time.Second
)

// Limits of the bytes that wait to be written. A peer that reads nothing is disconnected by writeTimeout. A trusted
// peer that sends thousands of requests at once is answered faster than its connection transfers, so its limit is
// high.
const (
	trustedPendingBytes   = 16 << 20
	untrustedPendingBytes = 1 << 20
)

// conn is one connection: TCP, TLS or WebSocket. Writing to it never blocks.
type conn struct {
	srv          *Server
	id           uint64
	key          connKey
	tokenAccount string                         // user name of the token that connected; "" for none
	localEnd     atomic.Pointer[netip.AddrPort] // local address, once connected
	weConnected  bool                           // this server connected
	trusted      atomic.Bool                    // a phone authenticated over it, or it is ours, or a trunk's
	gotMessage   bool                           // a message arrived; used by the reader only

	mu          sync.Mutex  // guards the fields below
	channel     connChannel // nil while connecting
	pending     []byte      // waiting to be written
	messageEnds []int       // ends of the messages in pending
	closed      bool
	writerWake  chan struct{}
}

// connKey identifies a connection in the connTable. name is the verified name of the peer's certificate; accepted
// connections have none.
type connKey struct {
	transport Transport
	addr      netip.AddrPort
	name      string
}

// connChannel transfers whole messages over one connection.
type connChannel interface {
	// serve passes every message to c until the connection ends.
	serve(c *conn)
	// write sends the messages in b; ends holds the end offset of each.
	write(b []byte, ends []int) error
	// close ends serve and write. It may be called more than once.
	close()
}

func newConn(s *Server, key connKey) *conn {
	return &conn{srv: s, id: newFlowID(), key: key, writerWake: make(chan struct{}, 1)}
}

// newClosedConn returns a connection that is already closed: sending over it fails.
func newClosedConn(s *Server, key connKey) *conn {
	c := newConn(s, key)
	c.closed = true
	return c
}

// transport returns the transport; UDP if c is nil.
func (c *conn) transport() Transport {
	if c == nil {
		return UDP
	}
	return c.key.transport
}

func (c *conn) flow() flow { return flow{addr: c.key.addr, conn: c} }

func (c *conn) isOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closed
}

// idleTimeout returns how long the connection may be silent between messages.
func (c *conn) idleTimeout() time.Duration {
	if c.trusted.Load() || c.srv.guard.trusted(c.key.addr.Addr(), c.srv.clock()) {
		return trustedIdleTimeout
	}
	return untrustedIdleTimeout
}

// untrustedMessageBytes is the largest message of a source that has not authenticated.
const untrustedMessageBytes = 16 << 10

// maxMessageBytes returns the size of the largest message that is accepted.
func (c *conn) maxMessageBytes() int {
	if c.trusted.Load() {
		return c.srv.limits.MessageBytes
	}
	return min(c.srv.limits.MessageBytes, untrustedMessageBytes)
}

// maxPendingBytes returns how many bytes may wait to be written.
func (c *conn) maxPendingBytes() int {
	if c.trusted.Load() {
		return trustedPendingBytes
	}
	return untrustedPendingBytes
}

// countIfUnused counts a connection that ended without a message as a fruitless request.
func (c *conn) countIfUnused() {
	if !c.weConnected && !c.gotMessage {
		c.srv.countFutileRequest(c.key.addr.Addr(), c.key.transport)
	}
}

// write queues one message and never blocks. A peer that does not read is disconnected.
func (c *conn) write(b []byte) {
	c.mu.Lock()
	tooMuch := len(c.pending)+len(b) > c.maxPendingBytes()
	if !c.closed && !tooMuch {
		c.pending = append(c.pending, b...)
		c.messageEnds = append(c.messageEnds, len(c.pending))
	}
	dead := c.closed
	c.mu.Unlock()
	if tooMuch || dead {
		c.closeAndFail()
		return
	}
	c.wakeWriter()
}

func (c *conn) wakeWriter() {
	select {
	case c.writerWake <- struct{}{}:
	default:
	}
}

// closeAndFail closes the connection and fails the transactions that wait for it. Only the first call removes it from
// the connTable.
func (c *conn) closeAndFail() {
	c.mu.Lock()
	first := !c.closed
	c.closed, c.pending, c.messageEnds = true, nil, nil
	ch := c.channel
	c.mu.Unlock()
	if ch != nil {
		ch.close()
	}
	c.wakeWriter()
	if first {
		c.srv.conns.remove(c)
	}
	for _, sh := range c.srv.shards {
		sh.enqueue(func(s *shard) { s.failConnTxs(c) })
	}
}

// failConnTxs fails the transactions of a closed connection.
func (s *shard) failConnTxs(c *conn) {
	for tx := range s.txsByConn[c] {
		tx.connectionLost(s)
	}
}

// dialAndServe makes the connection and serves it.
func (c *conn) dialAndServe() {
	ctx, cancel := context.WithTimeout(c.srv.ctx, dialTimeout)
	nc, err := c.srv.dialStream(ctx, c.key)
	cancel()
	if err != nil {
		c.srv.failedTargets.markFailed(c.key.transport, c.key.addr, c.srv.clock())
		c.closeAndFail()
		return
	}
	c.setLocalAddr(addrPort(nc.LocalAddr()))
	if !c.attach(&streamChannel{nc: nc}) {
		return
	}
	c.srv.conns.serving.Go(c.writeLoop)
	c.serve()
}

// attach sets the channel of the connection, unless it failed meanwhile.
func (c *conn) attach(ch connChannel) bool {
	c.mu.Lock()
	c.channel = ch
	dead := c.closed
	c.mu.Unlock()
	if dead {
		ch.close()
	}
	return !dead
}

// serve reads until the connection ends. A panic ends this connection only.
func (c *conn) serve() {
	defer c.closeAndFail()
	defer func() {
		if r := recover(); r != nil {
			c.srv.logPanic(r, debug.Stack())
		}
	}()
	c.channel.serve(c)
}

// writeLoop is the only writer of the connection.
func (c *conn) writeLoop() {
	var spare []byte
	var spareEnds []int
	for range c.writerWake {
		c.mu.Lock()
		b, ends, dead := c.pending, c.messageEnds, c.closed
		c.pending, c.messageEnds = spare[:0], spareEnds[:0]
		c.mu.Unlock()
		if dead {
			return
		}
		if len(b) > 0 {
			if err := c.channel.write(b, ends); err != nil {
				c.closeAndFail()
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
	return unmapAddrPort(p)
}

func unmapAddrPort(p netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}

// setLocalAddr records the local address of the connection.
func (c *conn) setLocalAddr(local netip.AddrPort) { c.localEnd.Store(&local) }

// localAddr returns the local address; zero before it is connected.
func (c *conn) localAddr() netip.AddrPort {
	if p := c.localEnd.Load(); p != nil {
		return *p
	}
	return netip.AddrPort{}
}
