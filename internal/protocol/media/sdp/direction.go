package sdp

// A Direction is an SDP direction attribute, seen from the sender of the body.
type Direction uint8

// The direction attributes (RFC 8866 §6.7).
const (
	SendRecv Direction = iota
	SendOnly
	RecvOnly
	Inactive
)

var directionNames = [...]string{"sendrecv", "sendonly", "recvonly", "inactive"}

// String returns the name of the attribute.
func (d Direction) String() string { return directionNames[d&3] }

// Sends reports whether the sender of the attribute sends media.
func (d Direction) Sends() bool { return d == SendRecv || d == SendOnly }

// Receives reports whether the sender of the attribute receives media.
func (d Direction) Receives() bool { return d == SendRecv || d == RecvOnly }

// Reverse returns the same flow seen from the other side: the full answer to an offer (RFC 3264 §6.1).
func (d Direction) Reverse() Direction { return directionOf(d.Receives(), d.Sends()) }

// intersect returns d restricted to what the other side's offer allows (RFC 3264 §6.1).
func (d Direction) intersect(offer Direction) Direction {
	return directionOf(d.Sends() && offer.Receives(), d.Receives() && offer.Sends())
}

func directionOf(sends, receives bool) Direction {
	switch {
	case sends && receives:
		return SendRecv
	case sends:
		return SendOnly
	case receives:
		return RecvOnly
	}
	return Inactive
}

func parseDirection(s string) (Direction, bool) {
	for i, n := range directionNames {
		if s == n {
			return Direction(i), true
		}
	}
	return SendRecv, false
}
