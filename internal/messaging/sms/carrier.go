package sms

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Carrier takes messages to their recipients.
type Carrier interface {
	// Send hands a message over. The reference is the same whenever a message is sent, and no other message's.
	// An error that is ErrUnsent says that nothing left; after any other it is not known whether something did. A message of several
	// parts may be left in the middle: then Result.IDs has those that left, and the others may be sent.
	Send(ctx context.Context, o Outgoing) (Result, error)
	// Ask tells what became of a message that may have been sent before a crash. ErrUnsent says that it was not sent, and may
	// be sent now; any other error that nobody knows.
	Ask(ctx context.Context, o Outgoing) (Result, error)
}

// A Limited is a carrier with a pace of its own.
type Limited interface {
	// Rates are how many messages of the network (segments) it takes in a second, and of those from one number.
	Rates() (all, number float64)
}

// ErrUnsent says that nothing left for the recipient.
var ErrUnsent = errors.New("nothing was sent")

// ErrUnknown says that nobody knows whether a message was sent.
var ErrUnknown = errors.New("whether it was sent is not known")

// A Busy is why a carrier takes nothing for a while; nothing was sent. It is ErrUnsent.
type Busy struct {
	After time.Duration
	Cause error // may be nil
}

func (b *Busy) Error() string {
	return fmt.Sprintf("the carrier takes nothing for %s: %v", b.After, b.Cause)
}

// Unwrap says that nothing was sent.
func (b *Busy) Unwrap() []error { return []error{ErrUnsent, b.Cause} }

// Outgoing is a message to send.
type Outgoing struct {
	Org, Reference string
	From, To, Body string
	UserID         string // of the sender; may be empty
	Media          []Media
	// Sent are the carrier's identifiers of the first parts, which left earlier.
	Sent []string
}

// A Result is what became of a message.
type Result struct {
	Status string // Sent, Delivered, Undelivered or Failed
	Fault  *Fault
	// IDs are the carrier's identifiers of the parts, in their order; receipts name them. May be empty.
	IDs []string
	// Later is a receipt that is known already, and is written After that time: of simulated carriers.
	Later *Result
	After time.Duration
	// Reply is a text that comes back from the recipient, after the same time: of simulated carriers.
	Reply string
}
