package smscarrier

import (
	"context"
	"errors"
	"net/http"

	"soniq/internal/messaging/sms"
)

// An Adapter speaks with one carrier. It is made anew when settings change, and is safe for concurrent use. Every call has a
// deadline.
type Adapter interface {
	// Send hands a message over. Result.Status is sms.Sent where the carrier has accepted it (or what is known already), Result.IDs
	// are the carrier's identifiers of its parts: receipts are found by them.
	//
	// What an error says decides whether the message is tried again. One that wraps sms.ErrUnsent: nothing left, and it may be sent
	// again or by another carrier (a connection that was refused, 429, 503). One that wraps ErrAuth, beside: neither, until somebody
	// corrects the settings. Any other: nobody knows, and it is not sent again unless Ask finds out. A message the carrier refuses
	// for good is no error but a Result with the status sms.Failed and a Fault. Busy says how long the carrier wants to be left alone.
	Send(ctx context.Context, o sms.Outgoing) (sms.Result, error)
}

// An Asker can find out what became of a message that may have been sent: sms.ErrUnsent where it was not, any other error where
// nobody knows.
type Asker interface {
	Ask(ctx context.Context, o sms.Outgoing) (sms.Result, error)
}

// A Caller is an adapter whose carrier posts receipts and messages to callback_url.
type Caller interface {
	// Callback verifies who sent a request and reads what it tells. raw is its body. ErrSignature: it is not the carrier's (403).
	// Any other error: it is not understood (400). It must not write anything: what it returns is committed before the answer.
	Callback(r *http.Request, raw []byte) ([]Event, error)
}

// A Tester can tell whether the carrier would take messages, without sending one.
type Tester interface {
	Test(ctx context.Context) error
}

// A Binder is an adapter that keeps a connection. Run keeps it until ctx ends; one node of those on the database runs it.
type Binder interface {
	Run(ctx context.Context)
	// State is nil while messages can be sent. An error that is ErrAuth says that the carrier refuses the log-in.
	State() error
}

// An Event is what a carrier tells: a receipt or a message.
type Event struct {
	Receipt *Receipt
	Message *Incoming
}

// A Receipt is what became of a message, or of a part of one.
type Receipt struct {
	ID     string     // as Send returned it
	Result sms.Result // Sent, Delivered, Undelivered or Failed; an empty status changes nothing
}

// An Incoming is a message for one of the organisation's numbers.
type Incoming struct {
	ID             string // the carrier's; the same message is written down once. "": every one is another
	From, To, Body string // numbers in E.164, or as the carrier writes them
	Media          []sms.Media
}

// Errors of adapters.
var (
	// ErrAuth says that the carrier does not accept our credentials.
	ErrAuth = errors.New("the carrier refuses the credentials")
	// ErrSignature says that a callback is not the carrier's.
	ErrSignature = errors.New("the signature is not the carrier's")
)

// A Busy is why a carrier takes nothing for a while; nothing was sent.
type Busy = sms.Busy
