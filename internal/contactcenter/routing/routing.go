// Package routing runs call flows, queue waiting, voicemail access and per-user rules (forwarding, do-not-disturb,
// order of phones, voicemail). The switch calls Attend for a destination that needs more than ringing phones, and
// executes the returned script.
package routing

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"soniq/internal/contactcenter/agent"
	"soniq/internal/contactcenter/flow"
	"soniq/internal/contactcenter/queue"
	"soniq/internal/customer/contact"
	"soniq/internal/identity/org"
	"soniq/internal/identity/user"
	"soniq/internal/intelligence/voiceagent"
	"soniq/internal/messaging/sms"
	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/event"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/pbx"
	"soniq/internal/telephony/voicemail"
)

// RouteHandler routes a caller to one destination of a kind: the queue, the mailbox, the flow or the user with the
// id. It returns one of the outcomes below. It returns CallerGone if the caller must not be routed further.
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
	DB        *db.DB
	Orgs      *org.Service
	Users     *user.Service
	Agents    *agent.Service
	Queues    *queue.Service
	Flows     *flow.Service
	Voicemail *voicemail.Service
	Numbers   *number.Service
	Calls     *call.Service
	Contacts  *contact.Service
	Messages  *sms.Service
	Files     call.Files
	Guard     *egress.Guard
	Outbox    *event.Outbox
	Log       *slog.Logger
	Now       func() time.Time
	Node      string
}

// Service routes callers. Set the function fields before the first call.
type Service struct {
	Config
	Queue   RouteHandler
	Mailbox RouteHandler // the id is the id of a user, a queue or a flow
	User    RouteHandler
	// VoiceAgents runs conversations of callers with AI voice agents. nil: there are no voice agents.
	VoiceAgents *voiceagent.Service
	// Emergency reports whether a number dialled in a country is an emergency number.
	Emergency func(country, dialled string) bool
	// RecognizePhrase waits until the caller says one of the phrases. pcm is the caller's audio, mono at 8 kHz. nil:
	// no speech recognition; callers press keys.
	RecognizePhrase func(ctx context.Context, phrases []string, pcm <-chan []int16) (index int, ok bool)
	// CallerMemory returns the memory of a number in the form that expressions use. nil: there is no memory.
	CallerMemory func(ctx context.Context, org, number string) (map[string]any, error)
	// SignRequest signs a request in the same way as webhook requests are signed.
	SignRequest func(ctx context.Context, org string, r *http.Request, body string) error

	client *http.Client // for the HTTP steps of flows
	// SetGreeting stores a greeting that a user recorded by telephone in the file at path, and sets it as the
	// greeting of their mailbox. nil: greetings cannot be recorded by telephone.
	SetGreeting func(ctx context.Context, org, user, path string) error
	// MailboxLocked is called when wrong PINs have locked a user's mailbox. nil: no notification.
	MailboxLocked func(ctx context.Context, org, user string, by pbx.Info)

	dispatcher dispatcher
}

// New returns a service. Distribute must run for queues to offer callers to agents.
func New(c Config) *Service {
	s := &Service{Config: c, client: c.Guard.Client(egress.Limits{Total: requestTimeout, Body: maxResponseSize})}
	s.Mailbox, s.User = s.routeVoicemail, s.routeUser
	s.dispatcher = dispatcher{s: s, orgs: map[string]*orgDispatcher{}}
	s.Queue = s.waitInQueue
	return s
}

// Attend returns the script for a handoff. It returns nil if the destination has no route handler.
func (s *Service) Attend(l pbx.Handoff) pbx.Script {
	if s.handlerFor(l.To) == nil {
		return nil
	}
	return func(ctx context.Context, v *pbx.ScriptedCall) { s.routeWithFallback(withFlowContext(ctx), v, l) }
}
