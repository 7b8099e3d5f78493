package callback

import (
	"context"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
)

// Calls places the calls of callbacks. The service of package call implements it.
type Calls interface {
	// Find returns a call of an organisation, or db.ErrNone.
	Find(ctx context.Context, org, id string) (call.Call, error)
	// ResolveParties sets the parties of a placement from a request. The error has all violations, those in wrong first.
	ResolveParties(ctx context.Context, p *call.Placement, b *call.CallCreate, wrong []op.Violation, noDestination string) error
	// Place starts a call. The error has the code draining if this server carries no calls.
	Place(ctx context.Context, p call.Placement) error
	// Do carries out a command on a call in progress.
	Do(ctx context.Context, org, id string, c call.Command) (call.Result, error)
}

// Observer is notified in the transaction that cancels a callback of a queue. origin is the call in which the caller requested it.
type Observer interface {
	CallbackCanceled(ctx context.Context, tx db.Querier, org, origin string) error
}

// Config has the dependencies of a Service.
type Config struct {
	DB    *db.DB
	Jobs  *job.Queue
	Calls Calls
	Clock clock.Clock // nil: the machine's
}

// Service stores callbacks and dials them. It observes the ends of their calls (call.Service.Observe). It is safe for concurrent use.
type Service struct {
	cfg       Config
	observers []Observer
}

// New returns a Service. Add observers before the first call of another method.
func New(c Config) *Service {
	c.Clock = clock.OrSystem(c.Clock)
	return &Service{cfg: c}
}

// Observe adds an observer.
func (s *Service) Observe(o Observer) { s.observers = append(s.observers, o) }
