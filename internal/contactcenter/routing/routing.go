// Package routing leads callers who need more than phones that ring: through flows, into queues and mailboxes, and to people by their
// own rules. The switch asks it where a lead goes, and carries out what its scripts ask for.
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

// A Room leads a caller to one place of a kind: the queue, the mailbox or the person with the id. It returns what came of it, one of the
// outcomes below, or Gone where the caller is led no further.
type Room func(ctx context.Context, v *pbx.Visit, id string, l pbx.Lead) (outcome string)

// What comes of leading a caller. After Answered the caller talks to somebody, and after Left, Callback and Ended everything was done for
// them: the call may end. After any other the caller is still there, and wants to be led elsewhere.
const (
	Gone        = ""         // the caller hung up, or is led by somebody else
	Answered    = "answered" // a person
	Left        = "left"     // a message
	Empty       = "empty"    // no message; a queue without agents
	Callback    = "callback" // they are called back
	Ended       = "ended"    // a flow that came to its end
	Timeout     = "timeout"  // waited in a queue as long as they may
	Overflow    = "overflow" // a queue that is full or closed
	Busy        = "busy"
	NoAnswer    = "no_answer"
	Rejected    = "rejected"
	Unreachable = "unreachable"
	Failed      = "failed"
)

// Config is what the room is made of.
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

// Service is the room. The function fields are set before the first call.
type Service struct {
	Config
	Queue   Room
	Mailbox Room // the id is that of a user, a queue or a flow
	Person  Room
	// Assistants talk to callers. nil: there are none.
	Assistants *voiceagent.Service
	// Emergency reports whether a number dialled in a country is an emergency number.
	Emergency func(country, dialled string) bool
	// Hear waits until one of the phrases is said; pcm is what is heard, in mono at 8 kHz. nil: nobody listens, and keys are pressed.
	Hear func(ctx context.Context, phrases []string, pcm <-chan []int16) (index int, ok bool)
	// Memory is what is remembered of a number, as expressions see it. nil: nothing.
	Memory func(ctx context.Context, org, number string) (map[string]any, error)
	// Sign signs a request as those of webhooks are signed.
	Sign func(ctx context.Context, org string, r *http.Request, body string) error

	client *http.Client // for the requests of flows
	// Greet keeps a greeting that a user recorded by telephone in the file at path, and has their mailbox greet with it.
	Greet func(ctx context.Context, org, user, path string) error
	// Locked is told that wrong PINs locked a user's mailbox.
	Locked func(ctx context.Context, org, user string, by pbx.Info)

	distributor distributor
}

// New makes the room.
func New(c Config) *Service {
	s := &Service{Config: c, client: c.Guard.Client(egress.Limits{Total: longestRequest, Body: largestAnswer})}
	s.Mailbox, s.Person = s.mailbox, s.person
	s.distributor = distributor{s: s, desks: map[string]*desk{}}
	s.Queue = s.wait
	return s
}

// Attend finds the script of a lead; nil where there is none of its kind.
func (s *Service) Attend(l pbx.Lead) pbx.Script {
	if s.room(l.To) == nil {
		return nil
	}
	return func(ctx context.Context, v *pbx.Visit) { s.attend(withTrip(ctx), v, l) }
}
