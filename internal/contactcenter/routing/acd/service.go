// Package acd lets callers wait in queues and distributes them to agents.
package acd

import (
	"context"
	"log/slog"

	"soniq/internal/contactcenter/agent"
	"soniq/internal/contactcenter/queue"
	"soniq/internal/customer/contact"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/wiring"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx"
)

// Router routes a caller who leaves a queue to another destination.
type Router interface {
	RouteTo(ctx context.Context, v *pbx.ScriptedCall, to string) (outcome string)
}

// Callbacks returns the calls of callbacks that callers of queues asked for.
type Callbacks interface {
	// QueueCallbackPlacement returns the call to place for the callback that a caller asked for in the call origin.
	QueueCallbackPlacement(ctx context.Context, org, origin, callID, agent string) (call.Placement, error)
}

// Config holds the services that the waiting in queues uses.
type Config struct {
	Router    Router
	DB        *db.DB
	Agents    *agent.Service
	Queues    *queue.Service
	Calls     *call.Service
	Callbacks Callbacks
	Contacts  *contact.Service
	Log       *slog.Logger
	Clock     clock.Clock // nil: the system clock
}

// Service lets callers wait in queues and offers them to agents.
type Service struct {
	cfg        Config
	dispatcher dispatcher
}

// New returns a service for waiting callers. Distribute must run for queues to offer callers to agents.
func New(c Config) *Service {
	c.Clock = clock.OrSystem(c.Clock)
	wiring.Check(c)
	s := &Service{cfg: c}
	s.dispatcher = dispatcher{s: s, orgs: map[string]*orgDispatcher{}}
	return s
}
