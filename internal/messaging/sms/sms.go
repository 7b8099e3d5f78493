// Package sms keeps text messages: those sent and received, the conversations they make up, and who asked not to be
// written to. Carriers take them to the outside world.
package sms

import (
	"context"
	"log/slog"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
)

// The states of a message.
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

// A Message is one text message.
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
	origin                  string // what the telephone knows it by that it was written on
	automatic               bool   // an answer to a keyword: it reaches those who opted out, too
}

// Media is an attachment.
type Media struct {
	URL         string `json:"url"`
	ContentType string `json:"content_type" doc:"Empty where it is not known"`
	SizeBytes   int64  `json:"size_bytes" doc:"0 where it is not known"`
}

// A Fault says why a message was not delivered.
type Fault struct {
	Code        string  `json:"code" enum:"invalid_destination,opted_out,blocked,carrier_rejected,unreachable,expired,rate_limited,unknown"`
	Message     string  `json:"message"`
	CarrierCode *string `json:"carrier_code"`
}

// An OwnNumber is a number of the organisation.
type OwnNumber struct {
	ID, Number string
	SMS        bool   // messages are enabled
	UserID     string // whose telephones it rings; may be empty
}

// Config is what the room is built from.
type Config struct {
	DB     *db.DB
	Outbox *event.Outbox
	Jobs   *job.Queue
	Now    func() time.Time
	Log    *slog.Logger
	Digest func(text string) string // recognises a number without keeping it
}

// Service is the room. The function fields are set before the first request.
type Service struct {
	Config
	// Carriers are the ways messages go, by name.
	Carriers map[string]Carrier
	// Route chooses the carrier for a message, or refuses it with an *op.Error. It also returns the number as it is written down.
	Route func(ctx context.Context, org string, from OwnNumber, to string) (carrier, number string, err error)
	// Connected finds a carrier the organisation has connected, by the name Route gave; nil where there is none any more.
	Connected func(ctx context.Context, org, name string) (Carrier, error)
	// Other chooses another of the connected carriers for a message, "" where none takes it. Nil: there is never another.
	Other func(ctx context.Context, org, from, to string, without []string) (name string, err error)
	// Lane is where the messages for a carrier wait; "" for those of the organisation. Nil: it is always that.
	Lane func(carrier string) string
	// Number finds a number of the organisation as people write it.
	Number func(ctx context.Context, q db.Querier, org, text string) (n OwnNumber, ok bool, err error)
	// Phone reads a number as people write it in the country of the organisation, and returns it in E.164.
	Phone func(ctx context.Context, org, text string) (e164 string, ok bool, err error)
	// User reports whether the organisation has such a user; nil: none.
	User func(ctx context.Context, org, id string) (bool, error)
	// Remember is told of a message in the transaction that writes it; nil: nobody is. Those we answer keywords with are not told.
	Remember func(ctx context.Context, tx db.Querier, org string, m Message) error
	// Forward hands an inbound message to the telephones its number rings; nil: nobody is told.
	Forward func(ctx context.Context, org string, m Message) error
	// Contact is who a number belongs to; nil: nobody knows.
	Contact func(ctx context.Context, org, e164 string) *event.Contact
	// ContactNumbers are the whole numbers of a contact; none where there is no such contact. nil: nobody has any.
	ContactNumbers func(ctx context.Context, org, id string) ([]string, error)

	// OnEnd is told of a message sent that has become what it will be, OnReceived of one that came in for a number, in the transaction of
	// the fact. nil: nobody is told.
	OnEnd      func(ctx context.Context, tx db.Querier, org string, m Message) error
	OnReceived func(ctx context.Context, tx db.Querier, org string, n OwnNumber, m Message) error

	pace pace
}

// New builds the room.
func New(c Config) *Service { return &Service{Config: c, Carriers: map[string]Carrier{}} }

// peer is the number of the other side.
func (m Message) peer() string {
	if m.Direction == inbound {
		return m.FromNumber
	}
	return m.ToNumber
}

// own is the number of the organisation's side.
func (m Message) own() string {
	if m.Direction == inbound {
		return m.ToNumber
	}
	return m.FromNumber
}

func (s *Service) contact(ctx context.Context, org, e164 string) *event.Contact {
	if s.Contact == nil {
		return nil
	}
	return s.Contact(ctx, org, e164)
}

// numbersOf are the numbers of a contact; "" has none.
func (s *Service) numbersOf(ctx context.Context, org, contact string) ([]string, error) {
	if contact == "" || s.ContactNumbers == nil {
		return nil, nil
	}
	return s.ContactNumbers(ctx, org, contact)
}
