// Package httplimit limits the HTTP connections of the machine and of source addresses. It keeps file descriptors back for calls and
// recordings.
package httplimit

import (
	"cmp"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"soniq/internal/platform/limit"
	"soniq/internal/platform/op"
)

// Config has the limits.
type Config struct {
	Connections int // at once on the machine
	PerAddress  int // at once from a source address
	WebSockets  int // at once on the machine
	// Proxies are networks whose connections are not counted by address: each carries the requests of many. This machine is one of them.
	Proxies     []netip.Prefix
	Descriptors *Descriptors
}

// Limiter counts connections. It is safe for concurrent use.
type Limiter struct {
	config Config

	mu         sync.Mutex // guards the fields below and those of the connections
	all        map[*conn]struct{}
	byAddress  map[string]int
	webSockets int
}

// New returns a limiter.
func New(c Config) *Limiter {
	return &Limiter{config: c, all: map[*conn]struct{}{}, byAddress: map[string]int{}}
}

// conn is a counted connection. Its fields are guarded by the limiter.
type conn struct {
	net.Conn
	limiter  *Limiter
	address  string // "": not counted by address
	since    time.Time
	waiting  bool // no request is being served
	hijacked bool
	closed   bool
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.limiter.forget(c)
	return c.Conn.Close()
}

// CloseWrite closes the side for writing, as net/http does before it closes a connection with unread data.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// ReadFrom keeps the fast path of net.TCPConn for files.
func (c *conn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }

// NetConn returns the connection below, as tls.Conn does.
func (c *conn) NetConn() net.Conn { return c.Conn }

// listener accepts connections within the limits.
type listener struct {
	net.Listener
	limiter *Limiter
	plain   bool
}

// Listener returns a listener that refuses connections beyond the limits. plain reports that clients speak HTTP without TLS: a refused
// client gets an answer then.
func (l *Limiter) Listener(of net.Listener, plain bool) net.Listener { return &listener{of, l, plain} }

// refusal is the answer to a connection beyond the limits.
const refusal = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\nContent-Type: application/problem+json\r\n" +
	"Content-Length: 95\r\n\r\n" + `{"type":"/errors/overloaded","title":"Overloaded","status":503,"detail":"too many connections"}`

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if counted := l.limiter.admit(c); counted != nil {
			return counted, nil
		}
		if l.plain {
			_ = c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)) // the answer fits the empty buffer of the socket
			_, _ = io.WriteString(c, refusal)
		}
		_ = c.Close()
	}
}

// admit counts a connection, or returns nil if it is refused. Waiting connections are closed to make room.
func (l *Limiter) admit(c net.Conn) *conn {
	added := &conn{Conn: c, limiter: l, address: l.addressOf(c), since: time.Now(), waiting: true}
	used, allowed := l.config.Descriptors.Count()
	l.mu.Lock()
	defer l.mu.Unlock()
	full := l.full(added.address, used, allowed)
	if full != nil {
		n := l.closeWaiting(full == limit.HTTPConnectionsOfAddress, added.address)
		full = l.full(added.address, used-n, allowed)
	}
	if full != nil {
		full.Refuse()
		return nil
	}
	l.all[added] = struct{}{}
	l.config.Descriptors.add(1)
	if added.address != "" {
		l.byAddress[added.address]++
	}
	return added
}

// full returns the limit that a connection from an address would pass, or nil.
func (l *Limiter) full(address string, used, allowed int) *limit.Limit {
	switch {
	case address != "" && l.byAddress[address] >= l.config.PerAddress:
		return limit.HTTPConnectionsOfAddress
	case len(l.all) >= min(l.config.Connections, allowed/2):
		return limit.HTTPConnections
	case used*100 >= allowed*limit.Descriptors.Int():
		return limit.Descriptors
	}
	return nil
}

// addressOf returns the key of the source address; "" for this machine and for proxies.
func (l *Limiter) addressOf(c net.Conn) string {
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	from := at.Addr().Unmap()
	if err != nil || from.IsLoopback() || slices.ContainsFunc(l.config.Proxies, func(p netip.Prefix) bool { return p.Contains(from) }) {
		return ""
	}
	return op.ClientKey(from)
}

// A connection may send its first request for newTime before it counts as waiting. closeShare is the part of the connections that is closed
// at once, so that a flood does not search all for each.
const (
	newTime    = time.Second
	closeShare = 16
)

// closeWaiting closes connections without a request, the longest waiting first, and returns how many. The caller holds mu.
func (l *Limiter) closeWaiting(ofAddress bool, address string) int {
	var waiting []*conn
	for c := range l.all {
		if c.waiting && !c.hijacked && time.Since(c.since) > newTime && (!ofAddress || c.address == address) {
			waiting = append(waiting, c)
		}
	}
	slices.SortFunc(waiting, func(a, b *conn) int { return cmp.Compare(a.since.UnixNano(), b.since.UnixNano()) })
	waiting = waiting[:min(len(waiting), 1+len(l.all)/closeShare)]
	for _, c := range waiting {
		l.drop(c)
		_ = c.Conn.Close()
	}
	return len(waiting)
}

func (l *Limiter) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(c)
}

// drop takes a connection out of the counts, once. The caller holds mu.
func (l *Limiter) drop(c *conn) {
	if c.closed {
		return
	}
	c.closed = true
	delete(l.all, c)
	l.config.Descriptors.add(-1)
	if c.hijacked {
		l.webSockets--
	}
	if c.address == "" {
		return
	}
	if l.byAddress[c.address]--; l.byAddress[c.address] <= 0 {
		delete(l.byAddress, c.address)
	}
}

// State follows the state of a connection. It is the ConnState of the HTTP server.
func (l *Limiter) State(of net.Conn, state http.ConnState) {
	if over, ok := of.(interface{ NetConn() net.Conn }); ok {
		if _, counted := of.(*conn); !counted {
			of = over.NetConn()
		}
	}
	c, ok := of.(*conn)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.closed {
		return
	}
	c.waiting, c.since = state == http.StateIdle || state == http.StateNew, time.Now()
	if state == http.StateHijacked {
		c.hijacked = true
		l.webSockets++
	}
}

// Handler refuses WebSockets beyond the limit.
func (l *Limiter) Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") && !l.mayUpgrade() {
			limit.WebSockets.Refuse()
			w.Header().Set("Retry-After", "5")
			op.Write(w, r, op.Fail("overloaded", "too many WebSocket connections are open; connect again later"))
			return
		}
		h.ServeHTTP(w, r)
	})
}

func (l *Limiter) mayUpgrade() bool {
	_, allowed := l.config.Descriptors.Count()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.webSockets < min(l.config.WebSockets, allowed/4)
}

// Counts returns the connections and the WebSockets among them.
func (l *Limiter) Counts() (connections, webSockets int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all), l.webSockets
}
