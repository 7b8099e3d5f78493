// Package transport sends and receives SIP messages over UDP, TCP, TLS and WebSocket (RFC 3261 §18, RFC 7118).
package transport

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"soniq/internal/protocol/sip/guard"
	"soniq/internal/protocol/sip/sipmsg"
)

// Layer: sockets, listeners and connections of one server, and what the layers above provide.

// Receiver takes what arrives.
type Receiver interface {
	// Receive queues a message. It returns its queue, which the caller must run or signal, or nil if nothing was
	// queued. With wait it blocks while the queue is full.
	Receive(raw string, f Flow, wait bool) Queue
	// ReceiveBroken answers a message of unknown length. Its connection is closed afterwards.
	ReceiveBroken(raw string, c *Conn)
	// ConnClosed fails the transactions that wait for a connection.
	ConnClosed(c *Conn)
	// DialFailed records that a connection could not be made.
	DialFailed(t sipmsg.Transport, a netip.AddrPort)
}

// Queue holds messages that were received and not processed.
type Queue interface {
	// RunQueued processes them in the calling goroutine, unless another one does. calm reports low load.
	RunQueued(calm bool)
	// Signal wakes the goroutine of the queue.
	Signal()
}

// Host is the server that a layer belongs to.
type Host interface {
	// Elapsed returns the time since the server started.
	Elapsed() time.Duration
	// IsDraining reports whether the server accepts nothing new.
	IsDraining() bool
	// CountFutileRequest counts a fruitless request of a source.
	CountFutileRequest(a netip.Addr, t sipmsg.Transport)
	// LogPanic logs a panic that was recovered.
	LogPanic(r any, stack []byte)
}

// Tracer takes every message that is sent or received. It must return at once.
type Tracer interface {
	// Trace completes an entry by its time and passes it on.
	Trace(e TraceEntry)
}

// Config holds the settings of a layer. tracer and rootCAs may be nil.
type Config struct {
	Receiver Receiver
	Host     Host
	Guard    *guard.Guard
	Logger   *slog.Logger

	Addr                string // list of addresses for UDP and TCP
	TLS                 TLSConfig
	WebSocket           WebSocketConfig
	RootCAs             *x509.CertPool // for TLS peers that the layer connects to
	PublicIP, PublicIP6 netip.Addr
	Tracer              Tracer

	Connections       int           // most connections
	SourceConnections int           // most connections of one untrusted source without authentication
	MessageBytes      int           // largest message over a connection
	PingInterval      time.Duration // of WebSocket
}

// Layer is the transport layer (RFC 3261 §18) over UDP, TCP, TLS and WebSocket.
type Layer struct {
	config     Config
	ctx        context.Context // ends when the server closes
	Stats      Stats
	sockets    []*udpSocket
	listeners  []listener
	conns      *connTable
	advertised advertisedAddrs
	readers    sync.WaitGroup
}

// Stats counts messages since start.
type Stats struct{ Received, Sent, Dropped atomic.Uint64 }

// New returns a layer without sockets.
func New(ctx context.Context, c Config) *Layer {
	l := &Layer{config: c, ctx: ctx}
	l.conns = newConnTable(l)
	return l
}

// NewDetached returns a layer that advertises an address and opens no socket, for tests of the layers above.
func NewDetached(ctx context.Context, c Config, at netip.AddrPort) *Layer {
	l := New(ctx, c)
	l.sockets = []*udpSocket{{addr: at}}
	l.advertised.init(l)
	return l
}

// Serve starts reading from all sockets.
func (l *Layer) Serve() {
	for _, k := range l.sockets {
		l.readers.Go(func() { k.readLoop(l) })
	}
	for _, x := range l.listeners {
		l.readers.Go(func() { l.conns.accept(x.TCPListener, x.secure) })
	}
}

// Close closes all sockets and connections. wait waits for their goroutines.
func (l *Layer) Close() {
	for _, k := range l.sockets {
		k.conn.Close()
	}
	for _, x := range l.listeners {
		x.Close()
	}
	l.conns.close()
}

// Wait waits for the goroutines of sockets and connections after close.
func (l *Layer) Wait() {
	l.conns.serving.Wait()
	l.readers.Wait()
}

// OpenCount returns the number of connections.
func (l *Layer) OpenCount() int64 { return l.conns.openCount() }

// CloseUntrusted closes the connections of a source over which no device authenticated.
func (l *Layer) CloseUntrusted(source netip.Addr) { l.conns.closeUntrusted(source) }

// ConnByID returns the connection with an id, or nil.
func (l *Layer) ConnByID(id uint64) *Conn { return l.conns.connByID(id) }

// CloseToken closes the connections that a token of an account authorised.
func (l *Layer) CloseToken(account string) { l.conns.closeToken(account) }
