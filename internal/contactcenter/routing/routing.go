// Package routing routes callers to their destinations and applies per-user rules (forwarding, do-not-disturb, order
// of phones, voicemail). The switch calls Attend for a destination that needs more than ringing phones, and executes
// the returned script. Its folders handle the other destinations: ivr runs call flows, acd lets callers wait in
// queues, mailbox records and plays messages.
package routing

import (
	"context"
	"log/slog"

	"soniq/internal/identity/user"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/wiring"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/pbx"
)

// RouteHandler routes a caller to one destination of a kind: for example the queue, the flow or the user with the id. It returns one of the
// outcomes below. It returns CallerGone if the caller must not be routed further.
type RouteHandler func(ctx context.Context, v *pbx.ScriptedCall, id string, l pbx.Handoff) (outcome string)

// Outcomes of routing. After Answered the caller talks to a person. After LeftMessage, Callback and Ended everything
// is done for the caller: the call may end. After any other outcome the caller is still connected and must be routed
// elsewhere.
const (
	CallerGone  = ""         // the caller hung up, or another script has the call
	Answered    = "answered" // by a person
	LeftMessage = "left"     // a voicemail was left
	NoResult    = "empty"    // no voicemail was left, or the queue has no agents
	Callback    = "callback" // the caller is called back later
	Ended       = "ended"    // the flow reached its end
	Timeout     = "timeout"  // the longest wait in the queue has passed
	Overflow    = "overflow" // the queue is full or closed
	Busy        = "busy"
	NoAnswer    = "no_answer"
	Rejected    = "rejected"
	Unreachable = "unreachable"
	Failed      = "failed"
)

// Config holds the services that routing uses.
type Config struct {
	DB      *db.DB
	Users   *user.Service
	Numbers *number.Service
	Log     *slog.Logger
	Clock   clock.Clock // nil: the system clock
}

// Service routes callers.
type Service struct {
	cfg      Config
	handlers map[string]RouteHandler // by kind of destination
}

// New returns a service that routes callers to users, and to every kind of destination that Handle adds.
func New(c Config) *Service {
	c.Clock = clock.OrSystem(c.Clock)
	wiring.Check(c)
	s := &Service{cfg: c, handlers: map[string]RouteHandler{}}
	s.Handle("user", s.routeUser)
	return s
}

// Handle adds the handler for a kind of destination, such as queue for destinations of the form queue:id. It must not
// be called once there are callers.
func (s *Service) Handle(kind string, h RouteHandler) { s.handlers[kind] = h }

// Attend returns the script for a handoff. It returns nil if the destination has no route handler.
func (s *Service) Attend(l pbx.Handoff) pbx.Script {
	if s.IsDialled(l.To) {
		return nil
	}
	return func(ctx context.Context, v *pbx.ScriptedCall) { s.routeWithFallback(withFlowContext(ctx), v, l) }
}
