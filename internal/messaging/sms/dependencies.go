package sms

import (
	"context"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// Interfaces to packages that stand beside or above this one.

// Numbers finds and parses phone numbers.
type Numbers interface {
	// OwnNumber finds a number of the organisation by its id or as users write it.
	OwnNumber(ctx context.Context, q db.Querier, org, text string) (n OwnNumber, ok bool, err error)
	// ParseNumber parses a number as users write it in the organisation's country, and returns it in E.164.
	ParseNumber(ctx context.Context, org, text string) (e164 string, ok bool, err error)
}

// Router chooses the carrier for a message, or refuses it with an *op.Error. It also returns the number as it is stored.
type Router interface {
	RouteMessage(ctx context.Context, org string, from OwnNumber, to string) (carrier, number string, err error)
	// OutboundStopped reports whether the operator has stopped calls and messages to the outside.
	OutboundStopped(ctx context.Context) (bool, error)
}

// Users reports whether the organisation has a user.
type Users interface {
	UserExists(ctx context.Context, org, id string) (bool, error)
}

// ConnectedCarriers are the carriers that organisations have connected.
type ConnectedCarriers interface {
	// Connected returns a carrier by the name from Router; nil if there is none any more.
	Connected(ctx context.Context, org, name string) (Carrier, error)
	// Alternative chooses another carrier for a message, "" if none accepts it.
	Alternative(ctx context.Context, org, from, to string, without []string) (name string, err error)
	// Lane returns the job lane for the messages of a carrier; "" for the lane of the organisation.
	Lane(carrier string) string
}

// Contacts connects numbers with contacts.
type Contacts interface {
	// LookupContact returns the contact of a number, or nil.
	LookupContact(ctx context.Context, org, e164 string) *event.Contact
	// ContactNumbers returns the numbers of a contact in E.164; none if there is no such contact.
	ContactNumbers(ctx context.Context, org, id string) ([]string, error)
}

// Phones delivers an inbound message to the telephones that its number rings.
type Phones interface {
	ForwardToPhones(ctx context.Context, org string, m Message) error
}

// Digester returns digests by which a number is recognised without storing it.
type Digester interface {
	Digest(text string) string
}
