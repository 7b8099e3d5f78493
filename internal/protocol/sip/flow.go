package sip

import "net/netip"

// flow is the way to a peer: a connection, or a UDP socket and an address. The
// connection is never chosen by anything but itself or the exact remote
// address, so that nothing reaches the wrong peer.
type flow struct {
	addr netip.AddrPort
	conn *conn   // nil: UDP
	sock *socket // of a datagram that came; nil: the one that fits addr
}

func (f flow) reliable() bool { return f.conn != nil }

func (f flow) transport() Transport { return f.conn.transport() }

// viaName is the transport as Via spells it.
func (f flow) viaName() string { return f.transport().viaName() }

// wire puts messages on the network. It must not keep b and must not block.
type wire interface {
	send(f flow, b []byte)
}
