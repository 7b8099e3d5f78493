package agent

import (
	"context"

	"soniq/internal/platform/db"
	"soniq/internal/platform/observe"
)

// Observers of agents. All run in the transaction of the change, in the order of Observe; an error rolls the transaction back.

// PresenceObserver is notified of agents whose presence has changed.
type PresenceObserver interface {
	PresenceChanged(ctx context.Context, tx db.Querier, org string, users []string) error
}

// ReadyObserver is notified when an agent chooses to be available, which ends wrap-up.
type ReadyObserver interface {
	AgentReady(ctx context.Context, tx db.Querier, org, id string) error
}

// WithdrawnObserver is notified if an agent becomes unavailable while a queue offers the agent a call: the agent is away,
// has do-not-disturb or no registered phone, or is suspended.
type WithdrawnObserver interface {
	AgentsWithdrawn(ctx context.Context, tx db.Querier, org string, users []string) error
}

// observers has the observers by interface.
type observers struct {
	presence  []PresenceObserver
	ready     []ReadyObserver
	withdrawn []WithdrawnObserver
}

// Observe adds an observer to the list of each observer interface it implements. It panics if there is none. Call it before the first
// request.
func (s *Service) Observe(o any) {
	l := &s.observers
	observe.Require("agent", o, observe.Add(&l.presence, o), observe.Add(&l.ready, o), observe.Add(&l.withdrawn, o))
}
