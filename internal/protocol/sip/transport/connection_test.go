package transport

import (
	"net/netip"
	"testing"

	"soniq/internal/protocol/sip/sipmsg"
)

// deaf is a receiver for connections over which nothing arrives.
type deaf struct{ Receiver }

func (deaf) ConnClosed(*Conn) {}

// A trunk that sends a burst is answered faster than its connection transfers, and stays connected. An untrusted peer
// is disconnected.
func TestConnection_WriteBacklogLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		known bool
		most  int // messages of 1 kB
	}{{"trunk", true, 16 << 10}, {"stranger", false, 1 << 10}} {
		peer := netip.MustParseAddrPort("192.0.2.1:5060")
		l := New(t.Context(), Config{Receiver: deaf{}})
		x := NewConn(l, ConnKey{Transport: sipmsg.TCP, Addr: peer}) // no writer drains it
		x.Trusted.Store(c.known)
		message := make([]byte, 1<<10)
		for range c.most {
			x.write(message)
		}
		if !x.IsOpen() {
			t.Errorf("%s: cut off before %d kB waited", c.name, c.most)
		}
		if x.write(message); x.IsOpen() {
			t.Errorf("%s: %d kB wait and the connection is still open", c.name, c.most+1)
		}
	}
}
