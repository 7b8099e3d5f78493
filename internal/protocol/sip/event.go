package sip

// Event is something that happened on a leg: one of the types below.
//
// Order, for every leg:
//
//	outgoing: (Provisional | early Reinvite)* → Answered | Failed | Lost
//	inbound:  early Reinvite* → Canceled | Bye | Lost or, after Answer, Acked | Lost
//	then:     (Reinvite | Refreshed | Belated | Info | Refer)* → Bye | Lost | Closed
//
// Failed, Canceled, Bye, Lost and Closed are final: every leg gets exactly one
// of them, as its last event. Events of one leg never overlap.
type Event interface{ event() }

// Provisional is a 1xx other than 100 to an outgoing INVITE. SDP is early
// media, nil when there is none. Tag tells forks apart.
type Provisional struct {
	Status int
	Reason string
	SDP    []byte
	Tag    string
}

// Answered is the 2xx to an outgoing INVITE. With an offer in the INVITE the
// ACK has been sent and SDP is the answer (that of the 18x when the 2xx had
// none); for a late offer SDP is the offer and Leg.Ack must follow.
type Answered struct {
	SDP []byte
}

// Failed is the final failure of an outgoing INVITE: 408 when nobody replied,
// 487 after Cancel, 503 when it could not be sent, 430 when the TCP connection
// of a registered phone is gone. Contact is the first target of a 3xx.
type Failed struct {
	Status     int
	Reason     string
	RetryAfter int // seconds, 0 when not given
	Q850       int // from the Reason header (RFC 3326), 0 when not given
	Contact    string
	Targets    int // how many addresses of the next hop were tried (RFC 3263 §4.3)
}

// Acked is the first ACK to our answer of an inbound INVITE. SDP is the answer
// to our offer when the INVITE had none, else nil.
type Acked struct {
	SDP []byte
}

// Canceled: the caller gave up before we answered; 487 has been sent. Final.
type Canceled struct {
	Q850 int // from the Reason header
}

// Reinvite is an offer inside the dialog; SDP nil asks us for one. Respond must
// be called once, from any goroutine, with a final status. For a late offer the
// answer comes as another Acked event. It is a re-INVITE, an UPDATE, or a
// PRACK; Early ones come before the call is answered.
type Reinvite struct {
	SDP     []byte
	Early   bool
	Respond func(status int, sdp []byte)
}

// Refreshed is the answer to a re-INVITE that kept the session alive, where it
// is not what the other side said before: a moved address, a new key. The
// offer was our last SDP, unchanged.
type Refreshed struct {
	SDP []byte
}

// Belated is a 2xx to a re-INVITE of ours that nobody waited for any more. The
// ACK has been sent; the other side is now where that offer wanted it, and has
// to be offered again what shall be.
type Belated struct{}

// Info is an INFO request, DTMF mostly. Respond must be called once.
type Info struct {
	ContentType string
	Body        []byte
	Respond     func(status int)
}

// Refer is a transfer asked for by the other side (RFC 3515). Respond must be
// called once; after a 2xx Notify tells how the transfer goes, 100 to 699, and
// ends with a status of 200 or above. "100 Trying" is told by itself. Notify
// does nothing after the end, or when the other side does not want to know.
type Refer struct {
	Target      URI
	ReferredBy  string
	Replaces    *Leg   // the dialog of ours that the call to Target shall replace; whose it is, is for the switch to judge
	RawReplaces string // the Replaces header of the target URI, unescaped; it may name a dialog elsewhere
	Respond     func(status int)
	Notify      func(status int, reason string)
}

// Bye: the other side hung up; 200 has been sent. Final.
type Bye struct {
	Reason string // the Reason header's text
	Q850   int
}

// Lost: the dialog is gone without a BYE of the other side: no ACK within
// 64*T1 (a BYE has been sent), a request inside the dialog timed out or got
// 481, the session timer ran out, or the server closed. Final.
type Lost struct {
	Why string
}

// Closed: what we asked for, Bye or Reject, is done. Final.
type Closed struct{}

func (Provisional) event() {}
func (Answered) event()    {}
func (Failed) event()      {}
func (Acked) event()       {}
func (Canceled) event()    {}
func (Reinvite) event()    {}
func (Refreshed) event()   {}
func (Belated) event()     {}
func (Info) event()        {}
func (Refer) event()       {}
func (Bye) event()         {}
func (Lost) event()        {}
func (Closed) event()      {}
