package smpp

import (
	"errors"
	"fmt"
	"time"
)

// An Outcome is what an error means for who wants to try again.
type Outcome uint8

const (
	// Retryable: the other side does not have the message; it may be sent again.
	Retryable Outcome = iota + 1
	// Permanent: the other side does not want it, now or later.
	Permanent
	// InDoubt: it was sent and not answered. Sending it again may deliver it twice.
	InDoubt
)

// String names it.
func (o Outcome) String() string {
	return map[Outcome]string{Retryable: "retryable", Permanent: "permanent", InDoubt: "in doubt"}[o]
}

// An Error is why a part of a message was not accepted.
type Error struct {
	Outcome Outcome
	Status  Status        // that the other side answered; OK where it did not
	Part    int           // from 1
	Wait    time.Duration // how long no message will be sent, where we were asked to slow down
	Err     error         // the reason where there is no status
}

// Error says what happened to which part.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("smpp: part %d, %s: %v", e.Part, e.Outcome, e.Err)
	}
	return fmt.Sprintf("smpp: part %d, %s: %s", e.Part, e.Outcome, e.Status)
}

// Unwrap is the reason.
func (e *Error) Unwrap() error {
	if e.Err != nil {
		return e.Err
	}
	return e.Status
}

// OutcomeOf tells what an error means; errors that are not ours are in doubt.
func OutcomeOf(err error) Outcome {
	var e *Error
	if errors.As(err, &e) {
		return e.Outcome
	}
	return InDoubt
}

// Reasons without a status.
var (
	ErrNotBound  = errors.New("smpp: not bound")
	ErrNoAnswer  = errors.New("smpp: no answer in time")
	ErrClosed    = errors.New("smpp: the connection was closed")
	ErrUnbound   = errors.New("smpp: the other side has unbound")
	ErrIdle      = errors.New("smpp: nothing was heard for too long")
	ErrSlow      = errors.New("smpp: the other side does not read")
	ErrForbidden = errors.New("smpp: not on a bind of this kind")
)

// refused makes an error of a status.
func refused(s Status) *Error {
	if s.passing() {
		return &Error{Outcome: Retryable, Status: s}
	}
	return &Error{Outcome: Permanent, Status: s}
}
