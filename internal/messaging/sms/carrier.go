package sms

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Carrier transports messages to their recipients. It is called by several goroutines.
type Carrier interface {
	// Send submits a message. The reference is unique to the message and the same at each attempt. ErrUnsent: nothing
	// was sent. Any other error: it is unknown whether something was sent. A message of several parts may stop
	// half-way: Result.IDs then has the parts that were sent, and the others may be sent later.
	Send(ctx context.Context, o Outgoing) (Result, error)
	// QueryStatus returns the state of a message that may have been sent before a crash. ErrUnsent: it was not sent
	// and may be sent now. Any other error: unknown.
	QueryStatus(ctx context.Context, o Outgoing) (Result, error)
}

// RateLimited is a carrier with its own rates.
type RateLimited interface {
	// Rates returns the limits in segments per second: of the carrier, and of one sender number.
	Rates() (all, number float64)
}

// ErrUnsent means that nothing was sent to the recipient.
var ErrUnsent = errors.New("nothing was sent")

// ErrOutcomeUnknown means that it is unknown whether a message was sent.
var ErrOutcomeUnknown = errors.New("it is unknown whether the message was sent")

// BusyError means that the carrier accepts nothing for a while. Nothing was sent: it is ErrUnsent.
type BusyError struct {
	After time.Duration
	Cause error // may be nil
}

// Error returns the wait time and the cause.
func (b *BusyError) Error() string {
	return fmt.Sprintf("the carrier takes nothing for %s: %v", b.After, b.Cause)
}

// Unwrap returns ErrUnsent and the cause.
func (b *BusyError) Unwrap() []error { return []error{ErrUnsent, b.Cause} }

// Outgoing is a message to be sent.
type Outgoing struct {
	Org, Reference string
	From, To, Body string
	UserID         string // of the sender; may be empty
	Media          []Media
	// Sent has the carrier's identifiers of the first parts, which were sent by an earlier attempt.
	Sent []string
}

// Result is the outcome of sending a message.
type Result struct {
	Status string // Sent, Delivered, Undelivered or Failed
	Fault  *Fault
	// IDs has the carrier's identifiers of the parts, in order; receipts refer to them. It may be empty.
	IDs []string
	// Later is a receipt that is already known and is stored after the time After. Only simulated carriers set it.
	Later *Result
	After time.Duration
	// Reply is a text that the recipient sends back after the same time. Only simulated carriers set it.
	Reply string
}
