package transport

import "time"

// Whether another datagram waits in a UDP socket.

// maxImmediateRead is the longest duration of a read that did not have to wait.
const maxImmediateRead = 25 * time.Microsecond

// more reports whether another datagram already waits. If the system cannot tell, it is estimated from the duration
// of the last read.
func (r *pendingDatagrams) more(read time.Duration) bool {
	if n, ok := r.nextSize(); ok {
		return n > 0
	}
	return read <= maxImmediateRead
}
