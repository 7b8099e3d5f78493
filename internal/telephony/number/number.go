// Package number keeps the telephone numbers of organisations and whom they ring.
package number

import (
	"context"
	"fmt"
	"sync"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/seal"
)

// Released is the state of a number that was given back.
const Released = "released"

// A Number is a telephone number of the organisation.
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
	account   db.Null       // with which it was bought
	after     time.Duration // of a pending order: when to ask again
}

// Assignment is whom a number rings.
type Assignment struct {
	Type string  `json:"type" enum:"flow,user,queue,none"`
	ID   *string `json:"id"`
	Name *string `json:"name"`
}

// Emergency is how far the number is known to emergency services.
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

// Service is the room. The function fields are set before the first request and may stay nil.
type Service struct {
	// OnRelease is called for a number that is given back, in the same transaction.
	OnRelease []func(ctx context.Context, tx db.Querier, org, id string) error
	// SameSource reports whether a call that came over one trunk may as well belong to another, because both are
	// the same carrier at the same address.
	SameSource func(ctx context.Context, came, belongs string) (bool, error)

	// Markets sell numbers without an account, by the name of the provider; that called sandbox to sandboxes only.
	Markets map[string]Market
	// Sellers are the providers at which organisations can have accounts, by name; Seal keeps the keys of these, and Guard says which
	// addresses may be asked.
	Sellers map[string]Seller
	Seal    *seal.Seal
	Guard   *egress.Guard
	// Jobs and JobQueue are where orders that are pending are followed.
	Jobs     *job.Queue
	JobQueue string
	// Reach says what is wrong with a destination such as queue:que_… or a number, or "".
	Reach func(ctx context.Context, org, to string) (wrong string, err error)

	db     *db.DB
	orgs   *org.Service
	outbox *event.Outbox
	bus    *bus.Bus
	now    func() time.Time
	routes *bus.Cache[*Number]

	waysMu sync.Mutex // guards ways
	ways   map[string]*way
}

// New makes the room.
func New(d *db.DB, orgs *org.Service, outbox *event.Outbox, b *bus.Bus, now func() time.Time) *Service {
	return &Service{db: d, orgs: orgs, outbox: outbox, bus: b, now: now, routes: bus.NewCache[*Number](b, Changed, cacheLife, now),
		ways: map[string]*way{}}
}

// Route returns the active number that was dialled, in whatever organisation, where the call came over the number's
// trunk; ok is false where there is none. It is on the path of every inbound call, and cached: nobody may change
// what is returned.
func (s *Service) Route(ctx context.Context, e164, trunkID string) (n *Number, ok bool, err error) {
	n, err = s.routes.Get(e164, func() (*Number, error) {
		n, err := byNumber(ctx, s.db.Read(db.Detached(ctx)), e164)
		return &n, err
	})
	if db.IsNone(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("route number: %w", err)
	}
	if n.TrunkID == nil || n.Status != "active" {
		return nil, false, nil
	}
	if *n.TrunkID == trunkID {
		return n, true, nil
	}
	if s.SameSource != nil {
		ok, err = s.SameSource(ctx, trunkID, *n.TrunkID)
	}
	return n, ok, err
}

// Get returns a number of the organisation by its id, or db.ErrNone; none that was given back.
func (s *Service) Get(ctx context.Context, q db.Querier, org, id string) (Number, error) {
	n, err := get(ctx, q, org, id)
	if err == nil && n.Status == Released {
		return Number{}, db.ErrNone
	}
	return n, err
}

// Owned returns the organisation's active number, or db.ErrNone: whether it may call out with it.
func (s *Service) Owned(ctx context.Context, q db.Querier, org, e164 string) (Number, error) {
	return ownNumber(ctx, q, org, e164)
}

// CallerID returns the number a user calls out with: the one chosen for them, one that rings them, or the
// organisation's first; db.ErrNone where it has none.
func (s *Service) CallerID(ctx context.Context, q db.Querier, org, userID string) (Number, error) {
	return callerID(ctx, q, org, userID)
}

// Callback returns the number at which a user is called back: one that rings them before all others; db.ErrNone where
// the organisation has none.
func (s *Service) Callback(ctx context.Context, q db.Querier, org, userID string) (Number, error) {
	return callback(ctx, q, org, userID)
}

// RemoveUser hands the numbers of a user who is removed to another, or to nobody.
func (s *Service) RemoveUser(ctx context.Context, tx db.Querier, org, userID, heir string) error {
	numbers, err := reassign(ctx, tx, org, userID, heir, db.At(s.now()))
	if err != nil {
		return fmt.Errorf("reassign numbers of user: %w", err)
	}
	s.changed(tx, numbers...)
	return nil
}

func (s *Service) changed(tx db.Querier, numbers ...string) {
	db.OnCommit(tx, func() {
		for _, n := range numbers {
			s.bus.Publish(Changed, n)
		}
	})
}

// allocate tells that a number works from now on.
func (s *Service) allocate(ctx context.Context, tx db.Querier, n Number) error {
	return s.tellAllocated(ctx, tx, n, event.Assignment{Type: n.AssignedTo.Type, ID: n.AssignedTo.ID, Name: n.AssignedTo.Name})
}

func (s *Service) tellAllocated(ctx context.Context, tx db.Querier, n Number, to event.Assignment) error {
	return s.outbox.Publish(ctx, tx, n.OrgID, event.NumberAllocated{NumberID: n.ID, Number: n.Number, Country: n.Country,
		Type: n.Type, Capabilities: n.can(), AssignedTo: to, AllocatedAt: n.AllocatedAt})
}
