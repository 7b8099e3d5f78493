package sip

import (
	"net/netip"
	"time"
)

// Inbound is a new call from outside, not answered yet. The fields do not
// change.
type Inbound struct {
	CallID      string
	RequestURI  URI
	From, To    Address
	Identity    Address // P-Asserted-Identity, zero when not given; to be believed only from trunks
	Anonymous   bool    // Privacy: id, or an anonymous From
	Offer       []byte  // SDP; nil is a late offer: Answer must carry ours
	Source      netip.AddrPort
	Transport   Transport
	Account     string // id of the account that authenticated, or
	TrunkID     string // id of the trunk the source belongs to
	UserAgent   string
	MaxForwards int

	leg *Leg
}

// Leg is the call's dialog; it is valid from the start.
func (in *Inbound) Leg() *Leg { return in.leg }

// Listen sets the event callback. Events that happened before are delivered
// first. Without it events wait.
func (in *Inbound) Listen(on func(Event)) {}

// Header returns the first value of a header field, "" when there is none.
func (in *Inbound) Header(name string) string { return "" }

// Ring sends a provisional response, 180 to 183, with early media when sdp is
// not nil. It does nothing once the call is answered or over.
func (in *Inbound) Ring(status int, sdp []byte) {}

// Answer sends 200 with sdp and repeats it until the ACK comes; without one
// after 64*T1 the call is hung up and Lost follows (RFC 3261 §13.3.1.4). It
// returns ErrOver when the call is known to be over; a CANCEL that is being
// handled at this moment wins and is told by Canceled.
func (in *Inbound) Answer(sdp []byte) error { return ErrOver }

// Reject sends a final failure, 300 to 699. An empty reason means the standard
// phrase. A retryAfter above zero adds Retry-After. Closed follows.
func (in *Inbound) Reject(status int, reason string, retryAfter time.Duration) {}
