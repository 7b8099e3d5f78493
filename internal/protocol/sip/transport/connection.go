package transport

import (
	"context"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"soniq/internal/protocol/sip/sipmsg"
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

// Conn is one connection: TCP, TLS or WebSocket. Writing to it never blocks.
type Conn struct {
	layer       *Layer
	ID          uint64
	Key         ConnKey
	Token       TokenLogin                     // of the token that connected
	localEnd    atomic.Pointer[netip.AddrPort] // local address, once connected
	WeConnected bool                           // this server connected
	Trusted     atomic.Bool                    // a phone authenticated over it, or it is ours, or a trunk's
	gotMessage  bool                           // a message arrived; used by the reader only

	mu          sync.Mutex  // guards the fields below
	channel     connChannel // nil while connecting
	pending     []byte      // waiting to be written
	messageEnds []int       // ends of the messages in pending
	closed      bool
	writerWake  chan struct{}
}

// ConnKey identifies a connection in the connTable. name is the verified name of the peer's certificate; accepted
// connections have none.
type ConnKey struct {
	Transport sipmsg.Transport
	Addr      netip.AddrPort
	Name      string
}

// connChannel transfers whole messages over one connection.
type connChannel interface {
	// serve passes every message to c until the connection ends.
	serve(c *Conn)
	// write sends the messages in b; ends holds the end offset of each.
	write(b []byte, ends []int) error
	// close ends serve and write. It may be called more than once.
	close()
}

func NewConn(l *Layer, key ConnKey) *Conn {
	return &Conn{layer: l, ID: newFlowID(), Key: key, writerWake: make(chan struct{}, 1)}
}

// NewClosedConn returns a connection that is already closed: sending over it fails.
func NewClosedConn(l *Layer, key ConnKey) *Conn {
	c := NewConn(l, key)
	c.closed = true
	return c
}

// Transport returns the transport; UDP if c is nil.
func (c *Conn) Transport() sipmsg.Transport {
	if c == nil {
		return sipmsg.UDP
	}
	return c.Key.Transport
}

// Prove records that a phone or trunk authenticated over the connection.
func (c *Conn) Prove() {
	if !c.Trusted.Swap(true) {
		c.layer.conns.proved(c)
	}
}

func (c *Conn) Flow() Flow { return Flow{Addr: c.Key.Addr, Conn: c} }

func (c *Conn) IsOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closed
}

// idleTimeout returns how long the connection may be silent between messages.
func (c *Conn) idleTimeout() time.Duration {
	if c.Trusted.Load() || c.layer.config.Guard.Trusted(c.Key.Addr.Addr(), c.layer.config.Host.Elapsed()) {
		return trustedIdleTimeout
	}
	return untrustedIdleTimeout
}

// untrustedMessageBytes is the largest message of a source that has not authenticated.
const untrustedMessageBytes = 16 << 10

// maxMessageBytes returns the size of the largest message that is accepted.
func (c *Conn) maxMessageBytes() int {
	if c.Trusted.Load() {
		return c.layer.config.MessageBytes
	}
	return min(c.layer.config.MessageBytes, untrustedMessageBytes)
}

// maxPendingBytes returns how many bytes may wait to be written.
func (c *Conn) maxPendingBytes() int {
	if c.Trusted.Load() {
		return trustedPendingBytes
	}
	return untrustedPendingBytes
}

// countIfUnused counts a connection that ended without a message as a fruitless request.
func (c *Conn) countIfUnused() {
	if !c.WeConnected && !c.gotMessage {
		c.layer.config.Host.CountFutileRequest(c.Key.Addr.Addr(), c.Key.Transport)
	}
}

// receive passes on one message. It blocks while the queue of its shard is full.
func (c *Conn) receive(raw string) {
	if q := c.layer.config.Receiver.Receive(raw, c.Flow(), true); q != nil {
		q.Signal()
	}
}

// WriteNow writes one message past the queue. Only the reader of the connection may call it, before it closes it.
func (c *Conn) WriteNow(b []byte) {
	c.channel.write(b, nil)
	c.layer.Stats.Sent.Add(1)
}

// write queues one message and never blocks. A peer that does not read is disconnected.
func (c *Conn) write(b []byte) {
	c.mu.Lock()
	tooMuch := len(c.pending)+len(b) > c.maxPendingBytes()
	if !c.closed && !tooMuch {
		c.pending = append(c.pending, b...)
		c.messageEnds = append(c.messageEnds, len(c.pending))
	}
	dead := c.closed
	c.mu.Unlock()
	if tooMuch || dead {
		c.Close()
		return
	}
	c.wakeWriter()
}

func (c *Conn) wakeWriter() {
	select {
	case c.writerWake <- struct{}{}:
	default:
	}
}

// Close closes the connection and fails the transactions that wait for it. Only the first call removes it from
// the connTable.
func (c *Conn) Close() {
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
		c.layer.conns.remove(c)
	}
	c.layer.config.Receiver.ConnClosed(c)
}

// dialAndServe makes the connection and serves it.
func (c *Conn) dialAndServe() {
	ctx, cancel := context.WithTimeout(c.layer.ctx, dialTimeout)
	nc, err := c.layer.dialStream(ctx, c.Key)
	cancel()
	if err != nil {
		c.layer.config.Receiver.DialFailed(c.Key.Transport, c.Key.Addr)
		c.Close()
		return
	}
	c.setLocalAddr(addrPort(nc.LocalAddr()))
	if !c.attach(&streamChannel{nc: nc}) {
		return
	}
	c.layer.conns.serving.Go(c.writeLoop)
	c.serve()
}

// attach sets the channel of the connection, unless it failed meanwhile.
func (c *Conn) attach(ch connChannel) bool {
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
func (c *Conn) serve() {
	defer c.Close()
	defer func() {
		if r := recover(); r != nil {
			c.layer.config.Host.LogPanic(r, debug.Stack())
		}
	}()
	c.channel.serve(c)
}

// writeLoop is the only writer of the connection.
func (c *Conn) writeLoop() {
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
				c.Close()
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
func (c *Conn) setLocalAddr(local netip.AddrPort) { c.localEnd.Store(&local) }

// localAddr returns the local address; zero before it is connected.
func (c *Conn) localAddr() netip.AddrPort {
	if p := c.localEnd.Load(); p != nil {
		return *p
	}
	return netip.AddrPort{}
}

// pause waits. It returns early, with an error, if ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
