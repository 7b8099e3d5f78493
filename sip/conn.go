package sip

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Deadlines of a TCP connection. A message must be complete soon after it
// began; between messages a phone with keep-alives is never idle this long.
const (
	dialLimit    = 3 * time.Second
	messageLimit = 10 * time.Second
	idleLimit    = 20 * time.Minute
	writeLimit   = 10 * time.Second
	backlogLimit = 1 << 20 // bytes a slow peer may leave unread
)

// conn is one TCP connection. Nobody who writes to it ever waits.
type conn struct {
	srv    *Server
	id     uint64
	remote netip.AddrPort

	mu     sync.Mutex // guards what follows
	nc     net.Conn   // nil while dialling
	out    []byte     // waiting to be written
	dead   bool
	wakeup chan struct{}
}

func newConn(s *Server, remote netip.AddrPort) *conn {
	return &conn{srv: s, id: newFlowID(), remote: remote, wakeup: make(chan struct{}, 1)}
}

func (c *conn) open() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.dead
}

// write queues b. A peer that does not read is cut off.
func (c *conn) write(b []byte) {
	c.mu.Lock()
	tooMuch := len(c.out)+len(b) > backlogLimit
	if !c.dead && !tooMuch {
		c.out = append(c.out, b...)
	}
	dead := c.dead
	c.mu.Unlock()
	if tooMuch || dead {
		c.fail()
		return
	}
	select {
	case c.wakeup <- struct{}{}:
	default:
	}
}

// fail closes the connection, once, and fails what waits for it.
func (c *conn) fail() {
	c.mu.Lock()
	first := !c.dead
	c.dead, c.out = true, nil
	if c.nc != nil {
		c.nc.Close()
	}
	c.mu.Unlock()
	select {
	case c.wakeup <- struct{}{}:
	default:
	}
	if first {
		c.srv.tcp.remove(c)
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

func (c *conn) dial() {
	ctx, cancel := context.WithTimeout(c.srv.ctx, dialLimit)
	defer cancel()
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", c.remote.String())
	if err != nil {
		c.fail()
		return
	}
	c.mu.Lock()
	c.nc = nc
	dead := c.dead
	c.mu.Unlock()
	if dead {
		nc.Close()
		return
	}
	c.srv.tcp.conns.Go(c.write1)
	c.read()
}

// write1 is the one writer.
func (c *conn) write1() {
	var spare []byte
	for range c.wakeup {
		c.mu.Lock()
		b, dead := c.out, c.dead
		c.out = spare[:0]
		c.mu.Unlock()
		if dead {
			return
		}
		if len(b) > 0 {
			c.nc.SetWriteDeadline(time.Now().Add(writeLimit))
			if _, err := c.nc.Write(b); err != nil {
				c.fail()
				return
			}
		}
		if spare = b; cap(spare) > 64<<10 {
			spare = nil
		}
	}
}

// read takes messages off the stream until it ends.
func (c *conn) read() {
	defer c.fail()
	var fr framer
	fr.limit = c.srv.limits.MessageBytes
	buf := make([]byte, 16<<10)
	began := time.Now()
	for {
		limit := idleLimit
		if fr.partial() {
			limit = messageLimit - time.Since(began)
		}
		c.nc.SetReadDeadline(time.Now().Add(limit))
		n, err := c.nc.Read(buf)
		if n > 0 {
			if !fr.partial() {
				began = time.Now()
			}
			fr.add(buf[:n])
			if !c.deliver(&fr, &began) {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// deliver hands over every complete message; false ends the connection.
func (c *conn) deliver(fr *framer, began *time.Time) bool {
	for {
		raw, what := fr.next()
		switch what {
		case frameNone:
			return true
		case framePing:
			c.write([]byte("\r\n")) // RFC 5626 §3.5.1
		case frameMessage:
			*began = time.Now()
			c.srv.receive(raw, flow{addr: c.remote, conn: c}, true)
		case frameBroken:
			c.srv.receiveBroken(raw, flow{addr: c.remote, conn: c})
			return false
		}
	}
}
