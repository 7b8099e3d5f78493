package smscarrier

import (
	"context"
	"errors"
	"net/http"

	"soniq/internal/messaging/sms"
)

// Adapter implements the protocol of one carrier. A new one is built when settings change. It must be safe for
// concurrent use. Every call has a deadline.
type Adapter interface {
	// Send submits a message. Result.Status is sms.Sent if the carrier has accepted it, or a state that is already
	// known. Result.IDs has the carrier's identifiers of its parts, by which receipts are matched.
	//
	// The error determines whether the message is retried. If it wraps sms.ErrUnsent, nothing was sent: the message
	// may be sent again or by another carrier (connection refused, 429, 503). If it also wraps ErrAuth, it is not
	// sent until the settings are corrected. With any other error the outcome is unknown: it is not sent again unless
	// QueryStatus shows that it was not sent. If the carrier refuses the message permanently, the error is nil and
	// the Result has the status sms.Failed and a Fault. BusyError has the time for which the carrier accepts nothing.
	Send(ctx context.Context, o sms.Outgoing) (sms.Result, error)
}

// StatusQuerier is an adapter that can query the state of a message that may have been sent. The error is
// sms.ErrUnsent if it was not sent; with any other error the outcome is unknown.
type StatusQuerier interface {
	QueryStatus(ctx context.Context, o sms.Outgoing) (sms.Result, error)
}

// CallbackReceiver is an adapter whose carrier posts receipts and messages to callback_url.
type CallbackReceiver interface {
	// ParseCallback verifies the sender of a request and parses its body (raw). ErrSignature: it is not from the
	// carrier (403). Any other error: it cannot be parsed (400). It must not store anything: the events it returns
	// are committed before the response.
	ParseCallback(r *http.Request, raw []byte) ([]Event, error)
}

// Tester is an adapter that can test, without sending a message, whether the carrier would accept messages.
type Tester interface {
	Test(ctx context.Context) error
}

// Binder is an adapter that keeps a connection. Run keeps it until ctx ends. Of the nodes on the database, one runs
// it.
type Binder interface {
	Run(ctx context.Context)
	// State returns nil while messages can be sent. ErrAuth: the carrier refuses the log-in.
	State() error
}

// Event is an event from a carrier: a receipt or a message.
type Event struct {
	Receipt *Receipt
	Message *Incoming
}

// Receipt is the delivery receipt of a message, or of a part of one.
type Receipt struct {
	ID     string     // as returned by Send
	Result sms.Result // Sent, Delivered, Undelivered or Failed; an empty status has no effect
}

// Incoming is a message for one of the organisation's numbers.
type Incoming struct {
	ID             string   // the carrier's; a message with the same id is stored once. "": each is a new one
	From, To, Body string   // numbers in E.164, or as the carrier writes them
	Others         []string // further recipients of a group message
	Media          []sms.Media
}

// Errors of adapters.
var (
	// ErrAuth means that the carrier does not accept our credentials.
	ErrAuth = errors.New("the carrier refuses the credentials")
	// ErrSignature means that a callback is not from the carrier.
	ErrSignature = errors.New("the signature is not the carrier's")
)

// BusyError means that a carrier accepts nothing for a while. Nothing was sent.
type BusyError = sms.BusyError
