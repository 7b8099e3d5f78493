// Package number stores the telephone numbers of organisations (DID) and their assignment to flows, users and queues.
// It searches, orders, ports and releases numbers at providers.
package number

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/seal"
	"soniq/internal/platform/wiring"
)

// Released is the status of a released number.
const Released = "released"

// Number is a telephone number of an organisation.
type Number struct {
	ID            string     `json:"id" example:"num_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Number        string     `json:"number" example:"+442079460018"`
	Country       string     `json:"country"`
	Region        *string    `json:"region"`
	Locality      *string    `json:"locality"`
	Type          string     `json:"type" enum:"local,mobile,national,toll_free,short_code"`
	Capabilities  []string   `json:"capabilities" nullable:"false"`
	Status        string     `json:"status" enum:"pending,active,suspended,releasing,released,porting_in,port_failed,failed"`
	StatusDetail  *string    `json:"status_detail" doc:"What the provider says of an order, or why a number is not given back yet"`
	Label         string     `json:"label"`
	Provider      string     `json:"provider" doc:"own: brought along and reached by a trunk"`
	TrunkID       *string    `json:"trunk_id"`
	AssignedTo    Assignment `json:"assigned_to"`
	SMSEnabled    bool       `json:"sms_enabled"`
	CallerIDName  *string    `json:"caller_id_name"`
	RecordingMode string     `json:"recording_mode" enum:"inherit,on,off"`
	Fallback      *string    `json:"fallback" doc:"Where calls go when nobody can be reached"`
	Emergency     Emergency  `json:"emergency"`
	MonthlyCost   *Cost      `json:"monthly_cost"`
	AllocatedAt   db.Time    `json:"allocated_at" nullable:"true"`
	ReleasedAt    db.Time    `json:"released_at" nullable:"true"`

	OrgID     string        `json:"-"`
	CreatedAt db.Time       `json:"-"`
	UpdatedAt db.Time       `json:"-"`
	provenAt  db.Time       // since when the number is known to be the organisation's; zero if it is not
	account   db.Null       // account with which the number was bought; "" if none
	after     time.Duration // for a pending order: delay before the next request
}

// Assignment is the flow, user or queue that gets the calls of a number.
type Assignment struct {
	Type string  `json:"type" enum:"flow,user,queue,none"`
	ID   *string `json:"id"`
	Name *string `json:"name"`
}

// Emergency is the state of the number's registration with emergency services.
type Emergency struct {
	Status  string  `json:"status" enum:"none,pending,registered,failed"`
	Address *string `json:"address"`
}

// Cost is a price in minor units, such as cents.
type Cost struct {
	Amount   int    `json:"amount"`
	Currency string `json:"currency"`
}

// Changed is the bus subject on which a changed number is published, in E.164.
const Changed = "changed.numbers"

const cacheLife = 3 * time.Second

// Config has the dependencies of a Service.
type Config struct {
	DB     *db.DB
	Orgs   *org.Service
	Outbox *event.Outbox
	Bus    *bus.Bus
	Clock  clock.Clock `wiring:"optional"`

	Trunks       Trunks
	Destinations Destinations
	// Providers holds the providers that need no account, by name. The one called sandbox serves sandboxes only.
	Providers map[string]ProviderAPI
	// AccountProviders holds the providers at which organisations can have accounts, by name. Seal encrypts their
	// keys. Guard checks the addresses of their APIs.
	AccountProviders map[string]ProviderType
	Seal             *seal.Seal
	Guard            *egress.Guard
	// Jobs and JobQueue run the jobs that follow pending orders and release numbers.
	Jobs     *job.Queue
	JobQueue string
}

// Trunks finds where calls of trunks come from.
type Trunks interface {
	// MatchesSource reports whether calls of a trunk may come from an address.
	MatchesSource(ctx context.Context, a netip.Addr, trunkID string) (bool, error)
	// SharedSource reports whether calls of a trunk come from addresses that other organisations use too.
	SharedSource(ctx context.Context, org, trunkID string) (bool, error)
}

// Destinations checks destinations such as queue:que_… or a number.
type Destinations interface {
	// CheckTarget returns the reason why a destination cannot be used, or "".
	CheckTarget(ctx context.Context, org, to string) (wrong string, err error)
	// PointingAtNumber returns the ids of what still leads to a number: users who forward there, queues, numbers, flows.
	PointingAtNumber(ctx context.Context, q db.Querier, n Number) (ids []string, err error)
}

// ReleaseObserver is notified in the transaction that releases a number.
type ReleaseObserver interface {
	NumberReleased(ctx context.Context, tx db.Querier, org, id string) error
}

// Service stores numbers and serves their API. Create it with New. It is safe for concurrent use.
type Service struct {
	config    Config
	observers []ReleaseObserver

	db     *db.DB
	orgs   *org.Service
	outbox *event.Outbox
	bus    *bus.Bus
	now    func() time.Time
	routes *bus.Cache[[]Number]

	clientsMu sync.Mutex // guards clients
	clients   map[string]*providerClient
}

// New returns a service. Add observers before the first request.
func New(c Config) *Service {
	wiring.Check(c)
	now := clock.OrSystem(c.Clock).Now
	return &Service{config: c, db: c.DB, orgs: c.Orgs, outbox: c.Outbox, bus: c.Bus, now: now,
		routes: bus.NewCache[[]Number](c.Bus, Changed, cacheLife, now), clients: map[string]*providerClient{}}
}

// Observe adds an observer. Call it before the first request.
func (s *Service) Observe(o ReleaseObserver) { s.observers = append(s.observers, o) }

// Get returns a number of the organisation by its id, or db.ErrNone. Released numbers are not found.
func (s *Service) Get(ctx context.Context, q db.Querier, org, id string) (Number, error) {
	n, err := getNumber(ctx, q, org, id)
	if err == nil && n.Status == Released {
		return Number{}, db.ErrNone
	}
	return n, err
}

// Owned returns the organisation's active number, or db.ErrNone. Only such a number may be shown in outbound calls.
func (s *Service) Owned(ctx context.Context, q db.Querier, org, e164 string) (Number, error) {
	return activeOfOrg(ctx, q, org, e164)
}

// CallerID returns the number that a user's outbound calls show: the user's chosen number, else one assigned to the
// user, else the organisation's oldest. It returns db.ErrNone if there is none.
func (s *Service) CallerID(ctx context.Context, q db.Querier, org, userID string) (Number, error) {
	return callerIDNumber(ctx, q, org, userID)
}

// Callback returns the number on which a user is called back: one assigned to the user if there is one, else as
// CallerID. It returns db.ErrNone if the organisation has none.
func (s *Service) Callback(ctx context.Context, q db.Querier, org, userID string) (Number, error) {
	return callbackNumber(ctx, q, org, userID)
}

// RemoveUser assigns the numbers of a removed user to the user heir, or to none if heir is "".
func (s *Service) RemoveUser(ctx context.Context, tx db.Querier, org, userID, heir string) error {
	numbers, err := reassign(ctx, tx, org, userID, heir, db.At(s.now()))
	if err != nil {
		return fmt.Errorf("reassign numbers of user: %w", err)
	}
	s.publishChanged(tx, numbers...)
	return nil
}

func (s *Service) publishChanged(tx db.Querier, numbers ...string) {
	db.OnCommit(tx, func() {
		for _, n := range numbers {
			s.bus.Publish(Changed, n)
		}
	})
}

// publishAllocated publishes number.allocated for a number that has become active.
func (s *Service) publishAllocated(ctx context.Context, tx db.Querier, n Number) error {
	return s.publishAllocatedTo(ctx, tx, n, event.Assignment{Type: n.AssignedTo.Type, ID: n.AssignedTo.ID, Name: n.AssignedTo.Name})
}

func (s *Service) publishAllocatedTo(ctx context.Context, tx db.Querier, n Number, to event.Assignment) error {
	return s.outbox.Publish(ctx, tx, n.OrgID, event.NumberAllocated{NumberID: n.ID, Number: n.Number, Country: n.Country,
		Type: n.Type, Capabilities: n.capabilities(), AssignedTo: to, AllocatedAt: n.AllocatedAt})
}
