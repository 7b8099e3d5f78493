package sms

import (
	"context"
	"errors"
	"time"
)

// A Carrier takes messages to their recipients.
type Carrier interface {
	// Send hands a message over. The reference is the same whenever a message is sent, and no other message's.
	// An error that is ErrUnsent says that nothing left; after any other it is not known whether something did.
	Send(ctx context.Context, o Outgoing) (Result, error)
	// Ask tells what became of a message that may have been sent before a crash. ErrUnsent says that it was not sent, and may
	// be sent now; any other error that nobody knows.
	Ask(ctx context.Context, o Outgoing) (Result, error)
}

// ErrUnsent says that nothing left for the recipient.
var ErrUnsent = errors.New("nothing was sent")

// ErrUnknown says that nobody knows whether a message was sent.
var ErrUnknown = errors.New("whether it was sent is not known")

// Outgoing is a message to send.
type Outgoing struct {
	Org, Reference string
	From, To, Body string
	UserID         string // of the sender; may be empty
	Media          []Media
}

// A Result is what became of a message.
type Result struct {
	Status string // Sent, Delivered, Undelivered or Failed
	Fault  *Fault
	// Later is a receipt that is known already, and is written After that time: of simulated carriers.
	Later *Result
	After time.Duration
	// Reply is a text that comes back from the recipient, after the same time: of simulated carriers.
	Reply string
}
