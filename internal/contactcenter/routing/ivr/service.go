// Package ivr runs call flows: the steps that a caller passes, one after the other.
package ivr

import (
	"context"
	"log/slog"
	"net/http"

	"soniq/internal/contactcenter/agent"
	"soniq/internal/contactcenter/flow"
	"soniq/internal/contactcenter/queue"
	"soniq/internal/contactcenter/routing"
	"soniq/internal/customer/contact"
	"soniq/internal/identity/org"
	"soniq/internal/identity/user"
	"soniq/internal/intelligence/voiceagent"
	"soniq/internal/messaging/sms"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/wiring"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx"
)

// Router routes a caller to a destination outside the flow.
type Router interface {
	RouteWithOptions(ctx context.Context, v *pbx.ScriptedCall, to string, w routing.RouteOptions) (outcome string)
	// IsDialled reports whether a destination is dialled, such as a number, and not routed by a handler.
	IsDialled(to string) bool
}

// PhraseRecognizer waits until the caller says one of the phrases in a language (BCP 47). pcm is the caller's audio,
// mono at 8 kHz.
type PhraseRecognizer interface {
	Recognize(ctx context.Context, phrases []string, language string, pcm <-chan []int16) (index int, ok bool)
}

// EmergencyNumbers reports whether a number dialled in a country is an emergency number.
type EmergencyNumbers interface {
	IsEmergency(country, dialled string) bool
}

// CallerMemory returns the memory of a number in the form that expressions use.
type CallerMemory interface {
	CallerMemory(ctx context.Context, org, number string) (map[string]any, error)
}

// RequestSigner signs a request in the same way as webhook requests are signed.
type RequestSigner interface {
	SignRequest(ctx context.Context, org string, r *http.Request, body string) error
}

// Config holds the services that flows use.
type Config struct {
	Router      Router
	DB          *db.DB
	Orgs        *org.Service
	Users       *user.Service
	Agents      *agent.Service
	Queues      *queue.Service
	Flows       *flow.Service
	Calls       *call.Service
	Contacts    *contact.Service
	Messages    *sms.Service
	VoiceAgents *voiceagent.Service // nil: there are no voice agents
	Recognizer  PhraseRecognizer    // nil: no speech recognition; callers press keys
	Emergency   EmergencyNumbers
	Memory      CallerMemory
	Signer      RequestSigner
	Guard       *egress.Guard
	Log         *slog.Logger
	Clock       clock.Clock // nil: the system clock
}

// Service runs the flows of callers.
type Service struct {
	cfg    Config
	client *http.Client // for the HTTP steps of flows
}

// New returns a service that runs flows.
func New(c Config) *Service {
	c.Clock = clock.OrSystem(c.Clock)
	wiring.Check(c, "Recognizer")
	return &Service{cfg: c, client: c.Guard.Client(egress.Limits{Total: requestTimeout, Body: maxResponseSize})}
}
