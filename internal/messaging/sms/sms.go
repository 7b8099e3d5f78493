// Package sms sends and receives text messages. It stores messages, conversations and opt-outs; carriers transport
// messages to and from other networks.
package sms

import (
	"context"
	"log/slog"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
)

// The states of a message. Their values are published.
const (
	scheduled   = "scheduled"
	queued      = "queued"
	sending     = "sending"
	Sent        = "sent"
	Delivered   = "delivered"
	Undelivered = "undelivered"
	Failed      = "failed"
	canceled    = "canceled"
	received    = "received"
)

const inbound, outbound = "inbound", "outbound"

// Message is one text message.
type Message struct {
	ID             string            `json:"id" example:"sms_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	ConversationID string            `json:"conversation_id" example:"thr_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Direction      string            `json:"direction" enum:"inbound,outbound"`
	Status         string            `json:"status" enum:"scheduled,queued,sending,sent,delivered,undelivered,canceled,failed,received"`
	FromNumber     string            `json:"from_number"`
	ToNumber       string            `json:"to_number"`
	Body           string            `json:"body"`
	Segments       int               `json:"segments" doc:"Of how many messages of the network it consists"`
	Encoding       string            `json:"encoding" enum:"gsm7,ucs2"`
	Media          []Media           `json:"media" nullable:"false"`
	Contact        *event.Contact    `json:"contact"`
	UserID         *string           `json:"user_id"`
	Source         string            `json:"source" enum:"api,mcp,console,flow,inbound"`
	Error          *Fault            `json:"error"`
	ScheduledAt    db.Time           `json:"scheduled_at" nullable:"true"`
	CreatedAt      db.Time           `json:"created_at"`
	SentAt         db.Time           `json:"sent_at" nullable:"true"`
	DeliveredAt    db.Time           `json:"delivered_at" nullable:"true"`
	Metadata       map[string]string `json:"metadata"`
	Sandbox        bool              `json:"sandbox"`

	org, carrier, reference string
	origin                  string // reference of the message on the telephone that wrote it; "" for others
	automatic               bool   // reply to a keyword; it is also sent to recipients that opted out
}

// Media is an attachment.
type Media struct {
	URL         string `json:"url"`
	ContentType string `json:"content_type" doc:"Empty where it is not known"`
	SizeBytes   int64  `json:"size_bytes" doc:"0 where it is not known"`
}

// Fault is the reason for which a message was not delivered.
type Fault struct {
	Code        string  `json:"code" enum:"invalid_destination,opted_out,blocked,carrier_rejected,unreachable,expired,rate_limited,unknown"`
	Message     string  `json:"message"`
	CarrierCode *string `json:"carrier_code"`
}

// OwnNumber is a number of the organisation.
type OwnNumber struct {
	ID, Number string
	SMS        bool   // messages are enabled
	UserID     string // user whose telephones the number rings; may be empty
}

// Config has the dependencies of the service.
type Config struct {
	DB     *db.DB
	Outbox *event.Outbox
	Jobs   *job.Queue
	Now    func() time.Time
	Log    *slog.Logger
	Digest func(text string) string // returns a digest by which a number is recognised without storing it
}

// Service sends, receives and stores messages. The function fields are set before the first request. It is safe for
// concurrent use.
type Service struct {
	Config
	// Carriers has the built-in carriers by name.
	Carriers map[string]Carrier
	// Route chooses the carrier for a message, or refuses it with an *op.Error. It also returns the number as it is
	// stored.
	Route func(ctx context.Context, org string, from OwnNumber, to string) (carrier, number string, err error)
	// ConnectedCarrier returns a carrier that the organisation has connected, by the name from Route; nil if there is
	// none any more.
	ConnectedCarrier func(ctx context.Context, org, name string) (Carrier, error)
	// AlternativeCarrier chooses another connected carrier for a message, "" if none accepts it. Nil: there is never
	// another.
	AlternativeCarrier func(ctx context.Context, org, from, to string, without []string) (name string, err error)
	// Lane returns the job lane for the messages of a carrier; "" for the lane of the organisation. Nil: always that.
	Lane func(carrier string) string
	// FindNumber finds a number of the organisation as users write it.
	FindNumber func(ctx context.Context, q db.Querier, org, text string) (n OwnNumber, ok bool, err error)
	// ParsePhone parses a number as users write it in the organisation's country, and returns it in E.164.
	ParsePhone func(ctx context.Context, org, text string) (e164 string, ok bool, err error)
	// UserExists reports whether the organisation has the user; nil: it has none.
	UserExists func(ctx context.Context, org, id string) (bool, error)
	// Remember is called for each message that was sent or received, in the transaction that stores it; nil: not
	// called. It is not called for replies to keywords.
	Remember func(ctx context.Context, tx db.Querier, org string, m Message) error
	// ForwardToPhones delivers an inbound message to the telephones that its number rings; nil: messages are not
	// delivered to telephones.
	ForwardToPhones func(ctx context.Context, org string, m Message) error
	// LookupContact returns the contact of a number, or nil; the field may be nil.
	LookupContact func(ctx context.Context, org, e164 string) *event.Contact
	// ContactNumbers returns the numbers of a contact in E.164; none if there is no such contact. The field may be
	// nil.
	ContactNumbers func(ctx context.Context, org, id string) ([]string, error)

	// OnFinal is called when an outbound message reaches a final state, OnReceived for each message received for a
	// number. Both run in the transaction of the change. Nil: not called.
	OnFinal    func(ctx context.Context, tx db.Querier, org string, m Message) error
	OnReceived func(ctx context.Context, tx db.Querier, org string, n OwnNumber, m Message) error

	pacer sendPacer
}

// New returns a service without carriers.
func New(c Config) *Service { return &Service{Config: c, Carriers: map[string]Carrier{}} }

// peer returns the number of the other party.
func (m Message) peer() string {
	if m.Direction == inbound {
		return m.FromNumber
	}
	return m.ToNumber
}

// ownNumber returns the number on the organisation's side.
func (m Message) ownNumber() string {
	if m.Direction == inbound {
		return m.ToNumber
	}
	return m.FromNumber
}

func (s *Service) lookupContact(ctx context.Context, org, e164 string) *event.Contact {
	if s.LookupContact == nil {
		return nil
	}
	return s.LookupContact(ctx, org, e164)
}

// numbersOf returns the numbers of a contact; none for "".
func (s *Service) numbersOf(ctx context.Context, org, contact string) ([]string, error) {
	if contact == "" || s.ContactNumbers == nil {
		return nil, nil
	}
	return s.ContactNumbers(ctx, org, contact)
}
