// Package smscarrier connects organisations with carriers of text messages: it keeps what they have connected, chooses who takes a
// message, speaks with carriers by SMPP and HTTP, and gives what comes from them to the room of messages.
package smscarrier

import (
	"context"
	"log/slog"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/messaging/sms"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/seal"
)

// Config is what the room is made of.
type Config struct {
	DB       *db.DB
	Bus      *bus.Bus
	Orgs     *org.Service
	Seal     *seal.Seal
	Guard    *egress.Guard
	Messages *sms.Service
	Log      *slog.Logger
	Now      func() time.Time
	BaseURL  string // under which the server is reached from outside
	Node     string // who binds
	// Number finds a number of the organisation by its id or as people write it.
	Number func(ctx context.Context, q db.Querier, org, text string) (n sms.OwnNumber, ok bool, err error)
	// Phone reads a number as people write it in the country of the organisation.
	Phone func(ctx context.Context, org, text string) (e164 string, ok bool, err error)
}

// Service is the room. It is safe for concurrent use.
type Service struct {
	Config
	known  *bus.Cache[[]*line]
	opened opened
	binds  binds
}

// New makes the room.
func New(c Config) *Service {
	const life = 10 * time.Second // a change on another node is known after it
	return &Service{Config: c, known: bus.NewCache[[]*line](c.Bus, Changed, life, c.Now)}
}
