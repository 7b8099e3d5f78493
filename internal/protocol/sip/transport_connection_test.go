package sip

import "testing"

// A trunk that sends a burst is answered faster than its connection transfers, and stays connected. An untrusted peer
// is disconnected.
func TestConnection_WriteBacklogLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		known bool
		most  int // messages of 1 kB
	}{{"trunk", true, 16 << 10}, {"stranger", false, 1 << 10}} {
		srv := newTestShard(t).srv
		x := newConn(srv, connKey{transport: TCP, addr: udpPeer.addr}) // no writer drains it
		x.trusted.Store(c.known)
		message := make([]byte, 1<<10)
		for range c.most {
			x.write(message)
		}
		if !x.isOpen() {
			t.Errorf("%s: cut off before %d kB waited", c.name, c.most)
		}
		if x.write(message); x.isOpen() {
			t.Errorf("%s: %d kB wait and the connection is still open", c.name, c.most+1)
		}
	}
}
