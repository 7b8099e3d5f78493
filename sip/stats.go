package sip

// Stats are counters since start, and gauges, for metrics.
type Stats struct {
	Received        uint64 // messages that came off the wire
	Sent            uint64 // messages put on the wire, retransmissions included
	Retransmissions uint64 // of ours, and of peers' requests that we absorbed
	ParseErrors     uint64 // messages answered 400 or dropped as malformed
	Rejected        uint64 // INVITEs refused with 503 by the limits
	Dropped         uint64 // messages dropped: full queue, flood, banned source
	Challenges      uint64 // 401 and 407 sent
	AuthFailures    uint64 // wrong user name or password
	Panics          uint64 // recovered; each one is a defect

	Invites            uint64 // new inbound INVITEs accepted for processing
	Dialogs            int64  // legs alive
	Calls              int64  // inbound calls in progress
	ServerTransactions int64  // finished ones that absorb retransmissions included
	ClientTransactions int64
	Connections        int64 // TCP
}
