package sip

import "net/netip"

// Flow: the path to a peer.

// flow is the path to a peer: a connection, or a UDP socket and an address. A connection is selected only by its id
// or by the exact remote address, so that no message reaches the wrong peer.
type flow struct {
	addr netip.AddrPort
	conn *conn      // nil: UDP
	sock *udpSocket // of a received datagram; nil: the one that fits addr
}

func (f flow) reliable() bool { return f.conn != nil }

func (f flow) transport() Transport { return f.conn.transport() }

// viaName returns the transport as written in Via.
func (f flow) viaName() string { return f.transport().viaName() }

// messageSender writes messages to the network. It must not keep b and must not block.
type messageSender interface {
	send(f flow, b []byte)
}
