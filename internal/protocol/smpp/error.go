package smpp

import (
	"errors"
	"fmt"
	"time"
)

// Outcome states whether a failed message may be sent again.
type Outcome uint8

const (
	// Retryable: the peer does not have the message; it may be sent again.
	Retryable Outcome = iota + 1
	// Permanent: the peer refuses the message, now and later.
	Permanent
	// InDoubt: it was sent without a response. Sending it again may deliver it twice.
	InDoubt
)

// String returns the name.
func (o Outcome) String() string {
	return map[Outcome]string{Retryable: "retryable", Permanent: "permanent", InDoubt: "in doubt"}[o]
}

// Error is the error for a part that was not accepted.
type Error struct {
	Outcome Outcome
	Status  Status        // status of the response; OK if there was none
	Part    int           // from 1
	Wait    time.Duration // time for which no message will be sent, if the peer has throttled us
	Err     error         // reason if there is no status
}

// Error returns the part, the outcome and the reason.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("smpp: part %d, %s: %v", e.Part, e.Outcome, e.Err)
	}
	return fmt.Sprintf("smpp: part %d, %s: %s", e.Part, e.Outcome, e.Status)
}

// Unwrap returns the reason: an error or a Status.
func (e *Error) Unwrap() error {
	if e.Err != nil {
		return e.Err
	}
	return e.Status
}

// OutcomeOf returns the outcome of an error; InDoubt if it is not an *Error.
func OutcomeOf(err error) Outcome {
	var e *Error
	if errors.As(err, &e) {
		return e.Outcome
	}
	return InDoubt
}

// Reasons without a status.
var (
	ErrNotBound   = errors.New("smpp: not bound")
	ErrNoResponse = errors.New("smpp: no answer in time")
	ErrClosed     = errors.New("smpp: the connection was closed")
	ErrUnbound    = errors.New("smpp: the peer has unbound")
	ErrIdle       = errors.New("smpp: nothing received for too long")
	ErrSlow       = errors.New("smpp: the peer does not read")
	ErrForbidden  = errors.New("smpp: not allowed in this bind mode")
)

// statusError returns the error for a status.
func statusError(s Status) *Error {
	if s.temporary() {
		return &Error{Outcome: Retryable, Status: s}
	}
	return &Error{Outcome: Permanent, Status: s}
}
