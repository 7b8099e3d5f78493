package sip

import "time"

// Outgoing is a call to place.
type Outgoing struct {
	// Binding, when set, is a registered phone: the request goes the way its
	// REGISTER came, over the same TCP connection, and URI defaults to its
	// Contact.
	Binding *Binding
	// URI is the request URI, "sip:+49301234567@carrier.example".
	URI string
	// NextHop is where to send when Binding is nil; empty: to the URI's host.
	NextHop Target
	// From and To are the header fields; a host left empty is our own address
	// in From and the URI's host in To.
	From, To Address
	// Identity becomes P-Asserted-Identity (RFC 3325) when it has a user.
	Identity Address
	// RemoteParty becomes Remote-Party-ID when it has a user.
	RemoteParty Address
	// Anonymous adds "Privacy: id" (RFC 3323).
	Anonymous bool
	// Header holds further header fields, in order.
	Header []Header
	// SDP is the offer; nil makes it a late offer.
	SDP []byte
	// Credentials answer a digest challenge.
	Credentials Credentials
	// MaxForwards is that of the inbound leg less one; 0 means 70.
	MaxForwards int
	// RingTimeout cancels when no final answer came; 0 means 5 minutes.
	RingTimeout time.Duration
}

// Target is a next hop. Host may carry a port; 5060 when it does not.
type Target struct {
	Host      string
	Transport Transport // UDP when empty
}

// Credentials are a digest user name and password.
type Credentials struct {
	Username, Password string
}

// Header is one header field, for those this package has no name for.
type Header struct {
	Name, Value string
}

// Reason tells why a leg is hung up (RFC 3326).
type Reason struct {
	Q850 int // cause, 16 is normal clearing; 0 sends no Reason header
	Text string
}
