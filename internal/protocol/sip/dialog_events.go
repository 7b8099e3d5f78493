package sip

import (
	"soniq/internal/protocol/sip/sipmsg"
)

// Events that a leg reports to the switch.

// Event is one of the types below, reported by a leg.
//
// Order, for every leg:
//
//	outgoing: (Provisional | early Reinvite)* → Answered | Failed | Lost
//	inbound:  early Reinvite* → Canceled | Bye | Lost or, after Answer, Acked | Lost
//	then:     (Reinvite | Refreshed | LateReinviteAnswer | Info | Refer)* → Bye | Lost | Closed
//
// Failed, Canceled, Bye, Lost and Closed are final: every leg gets exactly one of them, as its last event. Events of
// one leg never overlap.
type Event interface{ event() }

// Provisional is a 1xx other than 100 to an outgoing INVITE. SDP is early media, nil if there is none. Tag identifies
// the fork.
type Provisional struct {
	Status int
	Reason string
	SDP    []byte
	Tag    string
}

// Answered is the 2xx to an outgoing INVITE. If the INVITE had an offer, the ACK has been sent and SDP is the answer
// (that of the 18x if the 2xx had none). For a late offer SDP is the offer, and Leg.Ack must follow.
type Answered struct {
	SDP []byte
}

// Failed is the final failure of an outgoing INVITE. Status is 408 without any response, 487 after Cancel, and 503 if it could not be
// sent. It is 430 if the TCP connection of a registered phone is closed. Contact is the first target of a 3xx.
type Failed struct {
	Status     int
	Reason     string
	RetryAfter int // seconds, 0 if not given
	Q850       int // from the Reason header (RFC 3326), 0 if not given
	Contact    string
	Targets    int // number of addresses of the next hop that were tried (RFC 3263 §4.3)
	// Silent reports that the last target sent no response of any kind, not even 100.
	Silent bool
	// Lost is the INVITE with status 430, else nil: the phone may ring on.
	Lost *LostInvite
}

// Acked is the first ACK to our answer of an inbound INVITE. SDP is the answer to our offer if the INVITE had none,
// else nil.
//
// Unanswered is set if our answer carried an offer and the ACK has no answer to it (RFC 3261 §13.2.1 demands one).
type Acked struct {
	SDP        []byte
	Unanswered bool
}

// Canceled reports that the caller canceled before our answer; 487 has been sent. Reason is the value of the Reason
// header field, empty if the CANCEL had none. Final.
type Canceled struct {
	Q850   int // from the Reason header
	Reason string
}

// Reinvite is an offer of the peer inside the dialog, by re-INVITE, UPDATE or PRACK. SDP nil asks us for an offer;
// its answer then arrives as another Acked event. Early is set before the call is answered. Respond must be called
// once, from any goroutine, with a final status. A refusal may have one warning: the text of its Warning header.
type Reinvite struct {
	SDP     []byte
	Early   bool
	respond func(status int, sdp []byte, warning ...string)
}

// Respond answers the offer.
func (e Reinvite) Respond(status int, sdp []byte, warning ...string) {
	e.respond(status, sdp, warning...)
}

// Refreshed is the answer to a re-INVITE that refreshed the session, if it differs from the peer's last SDP: a
// changed address, a new key. The offer was our last SDP, unchanged.
type Refreshed struct {
	SDP []byte
}

// LateReinviteAnswer is a 2xx to our re-INVITE whose caller no longer waited. The ACK has been sent. That offer is
// now in effect at the peer, so the intended session has to be offered again.
type LateReinviteAnswer struct{}

// Info is an INFO request, mostly DTMF. Respond must be called once.
type Info struct {
	ContentType string
	Body        []byte
	respond     func(status int)
}

// Respond answers the request.
func (e Info) Respond(status int) { e.respond(status) }

// Refer is a transfer requested by the peer (RFC 3515). Respond must be called once. After a 2xx, Notify reports the
// progress of the transfer, 100 to 699; a status of 200 or above ends it. "100 Trying" is sent automatically. Notify
// does nothing after the end, or if the peer wants no NOTIFY.
type Refer struct {
	Target      sipmsg.URI
	ReferredBy  string
	Replaces    *Leg   // our dialog that the call to Target is to replace; the switch checks its owner
	RawReplaces string // unescaped Replaces header of the target URI; it may name a dialog elsewhere
	respond     func(status int)
	notify      func(status int, reason string)
}

// Respond answers the request.
func (e Refer) Respond(status int) { e.respond(status) }

// Notify reports the progress of the transfer.
func (e Refer) Notify(status int, reason string) { e.notify(status, reason) }

// Bye reports that the peer hung up; 200 has been sent. Final.
type Bye struct {
	Reason string // the Reason header's text
	Q850   int
}

// Lost reports that the dialog ended without a BYE of the peer. No ACK or PRACK arrived within 64*T1 (after a missing
// ACK a BYE has been sent). Or a request inside the dialog timed out or got 481, the session timer expired, or the
// server closed. Final.
type Lost struct {
	Why string
}

// Closed reports that our Bye or Reject is complete. Final.
type Closed struct{}

func (Provisional) event()        {}
func (Answered) event()           {}
func (Failed) event()             {}
func (Acked) event()              {}
func (Canceled) event()           {}
func (Reinvite) event()           {}
func (Refreshed) event()          {}
func (LateReinviteAnswer) event() {}
func (Info) event()               {}
func (Refer) event()              {}
func (Bye) event()                {}
func (Lost) event()               {}
func (Closed) event()             {}
