// Package acd lets callers wait in queues and distributes them to agents.
package acd

import (
	"context"
	"log/slog"
	"time"

	"soniq/internal/contactcenter/agent"
	"soniq/internal/contactcenter/queue"
	"soniq/internal/customer/contact"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx"
)

// Router routes a caller who leaves a queue to another destination.
type Router interface {
	RouteTo(ctx context.Context, v *pbx.ScriptedCall, to string) (outcome string)
}

// Config holds the services that the waiting in queues uses.
type Config struct {
	Router   Router
	DB       *db.DB
	Agents   *agent.Service
	Queues   *queue.Service
	Calls    *call.Service
	Contacts *contact.Service
	Log      *slog.Logger
	Now      func() time.Time
}

// Service lets callers wait in queues and offers them to agents.
type Service struct {
	Config
	dispatcher dispatcher
}

// New returns a service for waiting callers. Distribute must run for queues to offer callers to agents.
func New(c Config) *Service {
	s := &Service{Config: c}
	s.dispatcher = dispatcher{s: s, orgs: map[string]*orgDispatcher{}}
	return s
}
