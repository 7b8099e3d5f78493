// Package webhook tells customers' servers what happened: endpoints, signatures, deliveries, retries.
package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
)

// Status is how an endpoint is doing.
type Status string

// The states of an endpoint. Failing: five events in a row failed; one probe a minute is sent while the others wait.
// Paused: by its owner; events wait. Disabled: by a 410, by its own wish or after five days of failure; new events are
// not kept for it, those that waited still do.
const (
	Active   Status = "active"
	Failing  Status = "failing"
	Paused   Status = "paused"
	Disabled Status = "disabled"
)

// A Webhook is an endpoint that is told of events.
type Webhook struct {
	ID                  string            `json:"id" example:"whk_01JB2M"`
	URL                 string            `json:"url" example:"https://example.com/hooks"`
	Events              []string          `json:"events" nullable:"false" doc:"Kinds of events, or * for all"`
	Description         string            `json:"description"`
	Status              Status            `json:"status" enum:"active,failing,paused,disabled"`
	Secret              string            `json:"secret,omitempty" doc:"Only in the answer that made it; it cannot be read again"`
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
	CreatedAt           db.Time           `json:"created_at"`
}

// Filters narrow the events an endpoint is told of. Several filters must all match; within a list one match is enough.
// An event of a call matches by what is known of the call; once a call matches, its earlier events are told too, in their order.
// An event that can have no such thing as a filter asks for passes.
type Filters struct {
	QueueIDs  []string `json:"queue_ids,omitempty" maxItems:"100" doc:"Only calls that were in one of these queues, their mailboxes, and numbers that lead to them"`
	NumberIDs []string `json:"number_ids,omitempty" maxItems:"100" doc:"Only calls and messages over these numbers, and the numbers themselves"`
	Direction string   `json:"direction,omitempty" enum:"inbound,outbound,internal" doc:"Only calls and messages in this direction"`
	UserIDs   []string `json:"user_ids,omitempty" maxItems:"100" doc:"Only calls, messages and mailboxes of these users; a call is of everybody whose phone rang"`
}

func (f Filters) empty() bool {
	return f.Direction == "" && len(f.QueueIDs)+len(f.NumberIDs)+len(f.UserIDs) == 0
}

// Health is how deliveries went lately. The rate and the duration are taken from the newest thousand attempts of the
// last 24 hours; null where there were none.
type Health struct {
	SuccessRate24h      *int     `json:"success_rate_24h" doc:"Per cent"`
	P95MS               *int     `json:"p95_ms"`
	ConsecutiveFailures int      `json:"consecutive_failures"`
	OldestPendingAt     *db.Time `json:"oldest_pending_at"`
	Pending             int      `json:"pending"`
}

// The values of call_ended_timing.
const (
	enriched  = "enriched"
	immediate = "immediate"
)

// A Sealer encrypts what must be given back.
type Sealer interface {
	Seal(plain, associated []byte) ([]byte, error)
	Unseal(sealed, associated []byte) ([]byte, error)
}

// Config is what a Service is built from.
type Config struct {
	DB    *db.DB
	Bus   *bus.Bus
	Queue *job.Queue
	Seal  Sealer
	Guard *egress.Guard
	Log   *slog.Logger
	Now   func() time.Time
	Node  string

	Prefix string // of our own headers; x-service if empty
	// Outbox is told when an endpoint begins to fail, works again, is disabled, paused or resumed; nil: nobody is.
	Outbox *event.Outbox
	// NumberID is the id of an organisation's number, "" where it has none; nil: messages have no number.
	NumberID func(ctx context.Context, q db.Querier, org, e164 string) (string, error)
	// SignRecording turns the address of a recording into one that needs no credential; may be nil.
	SignRecording func(org, address string) string
}

// Service keeps endpoints and delivers events to them.
type Service struct {
	Config
	client *http.Client
	runner *job.Runner
	jitter func() float64 // 0.9 to 1.1

	replayMost int // deliveries that one request for a range makes

	known  sync.Map // organisation → *known
	pulses sync.Map // endpoint → *pulse
	flight sync.Map // delivery being attempted → endpoint

	doubted atomic.Int64 // attempts under way at endpoints that are not known to be well
}

const (
	queueName   = "webhooks"
	maxWorkers  = 2048
	perEndpoint = 32
	maxTimeout  = 30 * time.Second
)

// HealthSubject is where changes of an endpoint's status are announced, each as a Change.
const HealthSubject = "webhook.health"

// A Change is a new status of an endpoint.
type Change struct {
	OrgID     string
	WebhookID string
	Status    Status
	Reason    string
}

// New makes a Service. Nothing is delivered before Start.
func New(c Config) *Service {
	if c.Prefix = strings.ToLower(c.Prefix); c.Prefix == "" {
		c.Prefix = "x-service"
	}
	s := &Service{Config: c, jitter: tenPercent, replayMost: replayMost,
		client: c.Guard.Client(egress.Limits{Total: maxTimeout + time.Second, Body: 64 << 10, Idle: perEndpoint})}
	s.runner = &job.Runner{DB: c.DB, Queue: c.Queue, Name: queueName, Node: c.Node, Log: c.Log,
		Options: job.Options{Workers: maxWorkers, PerLane: perEndpoint, Timeout: maxTimeout + 15*time.Second, LaneLimit: s.laneLimit,
			Record: s.recordReports}}
	s.runner.Handle(deliverKind, s.deliver)
	s.runner.Handle(probeKind, s.probe)
	s.runner.Handle(releaseKind, s.release)
	return s
}

func (s *Service) time() db.Time { return db.At(s.Now()) }

// wants reports whether the endpoint asked for this kind and timing.
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
