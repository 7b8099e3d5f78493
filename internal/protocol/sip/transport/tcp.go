package transport

import (
	"net"
	"time"
)

// TCP and TLS: reading messages from a byte stream.

// streamChannel is a connChannel over TCP or TLS. Content-Length delimits messages.
type streamChannel struct{ nc net.Conn }

func (s *streamChannel) close() { s.nc.Close() }

func (s *streamChannel) write(b []byte, _ []int) error {
	s.nc.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err := s.nc.Write(b)
	return err
}

// serve reads messages from the stream until it ends.
func (s *streamChannel) serve(c *Conn) {
	var fr framer
	buf := make([]byte, 4<<10)
	began := time.Now()
	defer c.countIfUnused()
	if !s.handshake(c) {
		return
	}
	for {
		limit := c.idleTimeout()
		if fr.hasPartial() {
			limit = messageTimeout - time.Since(began)
		}
		s.nc.SetReadDeadline(time.Now().Add(limit))
		n, err := s.nc.Read(buf)
		if n > 0 {
			if !fr.hasPartial() {
				began = time.Now()
			}
			fr.limit = c.maxMessageBytes()
			fr.add(buf[:n])
			if !s.deliver(c, &fr, &began) {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// deliver passes on every complete message. It returns false if the connection must end.
func (s *streamChannel) deliver(c *Conn, fr *framer, began *time.Time) bool {
	for {
		raw, what := fr.next()
		switch what {
		case frameNone:
			return true
		case framePing:
			c.write(crlf) // RFC 5626 §3.5.1
		case frameMessage:
			*began = time.Now()
			c.gotMessage = true
			c.receive(raw)
		case frameBroken:
			c.layer.config.Receiver.ReceiveBroken(raw, c)
			return false
		}
	}
}
