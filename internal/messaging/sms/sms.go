// Package sms sends and receives text messages. It stores messages, conversations and opt-outs; carriers transport
// messages to and from other networks.
package sms

import (
	"context"
	"log/slog"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/redact"
	"soniq/internal/platform/wiring"
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
	sendingSince            db.Time
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

// Config has the dependencies of the service. Clock may be nil.
type Config struct {
	DB       *db.DB
	Outbox   *event.Outbox
	Jobs     *job.Queue
	Clock    clock.Clock
	Log      *slog.Logger
	Digester Digester

	Numbers  Numbers
	Router   Router
	Users    Users
	Carriers ConnectedCarriers
	Contacts Contacts
	Phones   Phones
	// Redactions has the numbers that organisations remove from the texts of messages.
	Redactions redact.Policies
}

// Service sends, receives and stores messages. It is safe for concurrent use.
type Service struct {
	cfg Config
	// BuiltIn has the built-in carriers by name. It is filled before the first message.
	BuiltIn   map[string]Carrier
	observers observers
	pacer     sendPacer
}

// New returns a service without built-in carriers. It panics if a dependency is missing.
func New(c Config) *Service {
	c.Clock = clock.OrSystem(c.Clock)
	wiring.Check(c)
	return &Service{cfg: c, BuiltIn: map[string]Carrier{}}
}

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

// numbersOf returns the numbers of a contact; none for "".
func (s *Service) numbersOf(ctx context.Context, org, contact string) ([]string, error) {
	if contact == "" {
		return nil, nil
	}
	return s.cfg.Contacts.ContactNumbers(ctx, org, contact)
}
