//go:build !linux

package transport

import "net"

// growBuffers requests large socket buffers.
func growBuffers(c *net.UDPConn) {
	c.SetReadBuffer(4 << 20)
	c.SetWriteBuffer(4 << 20)
}
