package sip

import "time"

// foundAfter is how long a read takes at the most that need not wait.
const foundAfter = 25 * time.Microsecond

// more tells whether another datagram is there already. Where the system cannot be asked it is guessed from how long the last read took.
func (r *remainder) more(read time.Duration) bool {
	if n, ok := r.ask(); ok {
		return n > 0
	}
	return read <= foundAfter
}
