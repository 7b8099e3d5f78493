package transport

import (
	"net"
	"syscall"
)

// growBuffers requests large socket buffers. With the kernel's default, calls are lost from about 1,000 calls a
// second. A privileged process may exceed net.core.rmem_max.
func growBuffers(c *net.UDPConn) {
	const size = 4 << 20
	c.SetReadBuffer(size)
	c.SetWriteBuffer(size)
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(fd uintptr) {
		syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUFFORCE, size)
		syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUFFORCE, size)
	})
}
