// Package webhook delivers events to customers' servers: endpoints, signatures, deliveries, retries, and a circuit
// breaker per endpoint.
package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/wiring"
)

// Status is the state of an endpoint.
type Status string

// States of an endpoint. Failing: five consecutive events failed; one probe a minute is sent and the other deliveries
// are held. Paused: by its owner; deliveries are held. Disabled: by a 410 response, by the response header
// webhook-delivery, or after five days of failure; new events are not delivered later, held deliveries are kept.
const (
	Active   Status = "active"
	Failing  Status = "failing"
	Paused   Status = "paused"
	Disabled Status = "disabled"
)

// Webhook is an endpoint that receives events.
type Webhook struct {
	ID                  string            `json:"id" example:"whk_01JB2M"`
	URL                 string            `json:"url" example:"https://example.com/hooks"`
	Events              []string          `json:"events" nullable:"false" doc:"Kinds of events, or * for all"`
	Description         string            `json:"description"`
	Status              Status            `json:"status" enum:"active,failing,paused,disabled"`
	Secret              string            `json:"secret,omitempty" secret:"true" doc:"Only in the answer that made it; it cannot be read again"`
	SecretHint          string            `json:"secret_hint" doc:"Last four characters of the secret"`
	Filters             Filters           `json:"filters"`
	Ordered             bool              `json:"ordered"`
	CallEndedTiming     string            `json:"call_ended_timing" enum:"enriched,immediate"`
	SignedRecordingURLs bool              `json:"signed_recording_urls"`
	TimeoutSeconds      int               `json:"timeout_seconds"`
	Headers             map[string]string `json:"headers" doc:"Names of the headers added to each delivery; their values are not shown"`
	Health              Health            `json:"health"`
	LastSuccessAt       *db.Time          `json:"last_success_at"`
	LastFailureAt       *db.Time          `json:"last_failure_at"`
	DisabledReason      *string           `json:"disabled_reason"`
	WithheldEvents      []string          `json:"withheld_events" nullable:"false" doc:"Kinds among events that are not sent, because who subscribed may not read them (any more). A change of url, events, filters or headers by a credential that may read them ends this"`
	CreatedAt           db.Time           `json:"created_at"`
}

// Filters select the events of an endpoint. All given filters must match; within a list one match suffices. An event
// of a call matches by all data about the call. When a call matches, its earlier events are delivered too, in order.
// An event that cannot have the value of a filter passes.
type Filters struct {
	QueueIDs  []string `json:"queue_ids,omitempty" maxItems:"100" doc:"Only calls that were in one of these queues, their mailboxes, and numbers that lead to them"`
	NumberIDs []string `json:"number_ids,omitempty" maxItems:"100" doc:"Only calls and messages over these numbers, and the numbers themselves"`
	Direction string   `json:"direction,omitempty" enum:"inbound,outbound,internal" doc:"Only calls and messages in this direction"`
	UserIDs   []string `json:"user_ids,omitempty" maxItems:"100" doc:"Only calls, messages and mailboxes of these users; a call is of everybody whose phone rang"`
}

func (f Filters) empty() bool {
	return f.Direction == "" && len(f.QueueIDs)+len(f.NumberIDs)+len(f.UserIDs) == 0
}

// Health is the recent state of the deliveries. The rate and the duration are computed from the newest thousand
// attempts of the last 24 hours; null if there were none.
type Health struct {
	SuccessRate24h      *int     `json:"success_rate_24h" doc:"Per cent"`
	P95MS               *int     `json:"p95_ms"`
	ConsecutiveFailures int      `json:"consecutive_failures"`
	OldestPendingAt     *db.Time `json:"oldest_pending_at"`
	Pending             int      `json:"pending"`
}

// Values of call_ended_timing.
const (
	enriched  = "enriched"
	immediate = "immediate"
)

// Sealer encrypts values that must be decrypted later.
type Sealer interface {
	Seal(plain, associated []byte) ([]byte, error)
	Unseal(sealed, associated []byte) ([]byte, error)
}

// Config holds the dependencies of a Service.
type Config struct {
	DB    *db.DB
	Bus   *bus.Bus
	Queue *job.Queue
	Seal  Sealer
	Guard *egress.Guard
	Log   *slog.Logger
	Clock clock.Clock // nil: the system clock
	Node  string

	Prefix string // of our own headers, unless the organisation chose another; x-service if empty
	// Outbox publishes changes of an endpoint's status; nil: they are not published.
	Outbox        *event.Outbox
	Numbers       Numbers
	Organizations Organizations
	Recordings    Recordings
	Rights        Rights
}

// Numbers returns the id of an organisation's number, or "".
type Numbers interface {
	NumberID(ctx context.Context, q db.Querier, org, e164 string) (string, error)
}

// Rights returns the scopes that who subscribed had and still has.
type Rights interface {
	StillHeld(ctx context.Context, h access.Holder) ([]access.Scope, error)
}

// Recordings returns an address of a recording that needs no credential, as long as its maker may read the recording.
type Recordings interface {
	SignedURL(maker access.Holder, address string) string
}

// Service manages endpoints and delivers events to them. It is safe for concurrent use.
type Service struct {
	cfg    Config
	client *http.Client
	runner *job.Runner
	jitter func() float64 // 0.9 to 1.1

	replayMost int // deliveries per range request

	endpointCaches   sync.Map // organisation → *endpointCache
	healthByEndpoint sync.Map // endpoint → *endpointHealth
	inFlight         sync.Map // delivery in progress → endpoint

	unprovenAttempts atomic.Int64 // attempts in progress at endpoints that are not known to be healthy
}

const (
	queueName      = "webhooks"
	maxWorkers     = 2048
	maxPerEndpoint = 32
	maxTimeout     = 30 * time.Second
)

// HealthSubject is the bus subject of status changes of endpoints. The message is a StatusChange.
const HealthSubject = "webhook.health"

// StatusChange is a new status of an endpoint.
type StatusChange struct {
	OrgID     string
	WebhookID string
	Status    Status
	Reason    string
}

// New returns a Service. Nothing is delivered before Start.
func New(c Config) *Service {
	c.Clock = clock.OrSystem(c.Clock)
	wiring.Check(c)
	if c.Prefix = strings.ToLower(c.Prefix); c.Prefix == "" {
		c.Prefix = "x-service"
	}
	s := &Service{cfg: c, jitter: tenPercentJitter, replayMost: maxReplay,
		client: c.Guard.Client(egress.Limits{Total: maxTimeout + time.Second, Body: 64 << 10, Idle: maxPerEndpoint})}
	s.runner = &job.Runner{DB: c.DB, Queue: c.Queue, Name: queueName, Node: c.Node, Log: c.Log,
		Options: job.Options{Workers: maxWorkers, PerLane: maxPerEndpoint, Timeout: maxTimeout + 15*time.Second, LaneLimit: s.laneLimit,
			Record: s.recordReports}}
	s.runner.Handle(deliverKind, s.deliver)
	s.runner.Handle(probeKind, s.probe)
	s.runner.Handle(releaseKind, s.release)
	return s
}

func (s *Service) time() db.Time { return db.At(s.cfg.Clock.Now()) }

// wants reports whether the endpoint is subscribed to this kind and timing.
func (e *endpoint) wants(ev event.Event) bool {
	switch {
	case ev.Audience == event.AudienceImmediate && e.Timing != immediate,
		ev.Audience == event.AudienceEnriched && e.Timing == immediate:
		return false
	}
	for _, k := range e.Events {
		if k == "*" || k == string(ev.Kind) {
			return true
		}
	}
	return false
}
