// Package smscarrier connects organisations with SMS carriers over SMPP and HTTP. It stores the carriers' settings
// and state, selects the carrier for a message, sends it, and passes receipts and received messages to package sms.
package smscarrier

import (
	"log/slog"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/messaging/sms"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/seal"
	"soniq/internal/platform/wiring"
)

// Config has the dependencies of the service.
type Config struct {
	DB       *db.DB
	Bus      *bus.Bus
	Orgs     *org.Service
	Seal     *seal.Seal
	Guard    *egress.Guard
	Messages *sms.Service
	Log      *slog.Logger
	Clock    clock.Clock // nil: the system clock
	BaseURL  string      // public address of the server
	Node     string      // name of this node in connection leases
	Numbers  sms.Numbers
	// MayDelete is asked before receipts and parts are deleted by age.
	MayDelete clock.DeletionGate
}

// Service manages the SMS carriers of all organisations. It is safe for concurrent use.
type Service struct {
	cfg         Config
	clientCache *bus.Cache[[]*carrierClient]
	clients     clientTable
	connections connectionTable
}

// New returns the service. Run and Sweep start its background work.
func New(c Config) *Service {
	const life = 10 * time.Second // a change on another node is seen after this time at the latest
	c.Clock = clock.OrSystem(c.Clock)
	wiring.Check(c)
	return &Service{cfg: c, clientCache: bus.NewCache[[]*carrierClient](c.Bus, Changed, life, c.Clock.Now)}
}
