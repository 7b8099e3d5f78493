package transport

import (
	"net/netip"

	"soniq/internal/protocol/sip/sipmsg"
)

// Flow: the path to a peer.

// Flow is the path to a peer: a connection, or a UDP socket and an address. A connection is selected only by its id
// or by the exact remote address, so that no message reaches the wrong peer.
type Flow struct {
	Addr netip.AddrPort
	// Client is the sender behind an edge, as the edge saw it; zero if Addr is the sender's. It is of a received message.
	Client netip.AddrPort
	Conn   *Conn      // nil: UDP
	sock   *udpSocket // of a received datagram; nil: the one that fits addr
}

// Source returns the address of the sender: behind an edge the client's, else Addr.
func (f Flow) Source() netip.AddrPort {
	if f.Client.IsValid() {
		return f.Client
	}
	return f.Addr
}

// IsSameHost reports whether a flow has the sender's address of a known one, whatever its port. What an edge sends itself
// has no client.
func (f Flow) IsSameHost(known Flow) bool {
	if !f.Client.IsValid() && known.Client.IsValid() {
		return f.Addr.Addr() == known.Addr.Addr()
	}
	return f.Source().Addr() == known.Source().Addr()
}

func (f Flow) Reliable() bool { return f.Conn != nil }

func (f Flow) Transport() sipmsg.Transport { return f.Conn.Transport() }

// ViaName returns the transport as written in Via.
func (f Flow) ViaName() string { return f.Transport().ViaName() }
