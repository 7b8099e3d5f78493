package sip

import (
	"context"
	"errors"
)

// Errors of legs and servers.
var (
	ErrOver    = errors.New("sip: the leg is over")
	ErrClosed  = errors.New("sip: the server is closed")
	ErrPending = errors.New("sip: another offer is under way")
)

// StatusError is a final failure to a request inside a dialog or a REGISTER.
type StatusError struct {
	Method string
	Status int
	Reason string
}

func (e *StatusError) Error() string { return "sip: " + e.Method + " refused: " + e.Reason }

// Leg is a dialog with one phone or trunk, or the attempt at one.
type Leg struct {
	callID string
}

// CallID is the dialog's Call-ID.
func (l *Leg) CallID() string { return l.callID }

// Cancel gives up an outgoing call that is not answered yet; Failed follows.
// An answer that crosses it is acknowledged and hung up at once (RFC 3261
// §9.1). After the answer it does nothing.
func (l *Leg) Cancel() {}

// Bye hangs up in whatever state the leg is: an outgoing call that rings is
// canceled, an inbound one refused with 480, an answered one waits for its ACK
// before the BYE leaves (RFC 3261 §15). Closed or Failed follows.
func (l *Leg) Bye(r Reason) {}

// Reinvite offers sdp and returns the answer; the ACK has been sent. With nil
// sdp it returns the other side's offer and Ack must follow. 491 is retried
// after the pause of RFC 3261 §14.1 until ctx ends. Other refusals are a
// *StatusError and leave the session as it was.
func (l *Leg) Reinvite(ctx context.Context, sdp []byte) ([]byte, error) { return nil, ErrOver }

// Info sends INFO and returns when it is answered.
func (l *Leg) Info(ctx context.Context, contentType string, body []byte) error { return ErrOver }

// Ack sends the ACK of a late offer with our answer.
func (l *Leg) Ack(sdp []byte) {}
