// Package queue stores queues, their members (agents), the entries of waiting callers, and the offers of callers to
// agents.
package queue

import (
	"context"

	"soniq/internal/contactcenter/agent"
	"soniq/internal/identity/org"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/wiring"
)

// Queue holds callers until an agent answers.
type Queue struct {
	ID        string  `json:"id" example:"que_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Name      string  `json:"name"`
	Extension *string `json:"extension" example:"600"`
	Settings
	MembersCount int     `json:"members_count"`
	CreatedAt    db.Time `json:"created_at"`
	UpdatedAt    db.Time `json:"updated_at"`
	Stats        *Stats  `json:"stats,omitempty" doc:"With include=stats"`

	OrgID string `json:"-"`
}

// Settings control how callers and agents of a queue are handled.
type Settings struct {
	Strategy          string         `json:"strategy" enum:"ring_all,round_robin,longest_idle,fewest_calls,priority,skills,random"`
	RingTimeout       int            `json:"ring_timeout_seconds"`
	RetryDelay        int            `json:"retry_delay_seconds"`
	WrapUp            int            `json:"wrap_up_seconds"`
	MaxWait           int            `json:"max_wait_seconds"`
	MaxCallers        int            `json:"max_callers" doc:"0: no limit"`
	JoinWhenNoAgents  bool           `json:"join_when_no_agents"`
	LeaveWhenNoAgents bool           `json:"leave_when_no_agents"`
	Overflow          *Overflow      `json:"overflow"`
	Priority          int            `json:"priority" doc:"Of its callers among those of other queues; higher comes first"`
	MusicAudioID      *string        `json:"music_audio_id"`
	Announce          Announce       `json:"announce"`
	Callback          Callback       `json:"callback"`
	WhisperAudioID    *string        `json:"whisper_audio_id"`
	RecordingMode     string         `json:"recording_mode" enum:"inherit,on,off"`
	ServiceLevel      int            `json:"service_level_seconds"`
	ShortAbandon      int            `json:"short_abandon_seconds"`
	MissedOffersLimit int            `json:"missed_offers_limit" doc:"0: nobody is sent away"`
	MissedOffersPause int            `json:"missed_offers_pause_seconds"`
	RequiredSkills    map[string]int `json:"required_skills" nullable:"false"`
	Hours             *org.Hours     `json:"hours" doc:"null: always open"`

	Dispositions        []Disposition `json:"dispositions" nullable:"false" doc:"Codes for the outcome of its calls; empty: every code is accepted"`
	DispositionRequired bool          `json:"disposition_required" doc:"The agent's wrap-up lasts until the call has a disposition, at most an hour longer"`
}

// Disposition is a code for the outcome of a call of the queue.
type Disposition struct {
	Code  string `json:"code" example:"resolved"`
	Label string `json:"label" example:"Resolved"`
}

// Overflow is the destination for callers that cannot stay in the queue.
type Overflow struct {
	To           string `json:"to" example:"voicemail:usr_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	AfterSeconds *int   `json:"after_seconds" doc:"null: after max_wait_seconds, or where the queue is full or has no agents"`
}

// Announce sets the announcements to waiting callers.
type Announce struct {
	Position      bool    `json:"position"`
	EstimatedWait bool    `json:"estimated_wait"`
	EverySeconds  int     `json:"every_seconds"`
	AudioID       *string `json:"audio_id"`
}

// Callback sets whether callers may hang up and be called back when it is their turn.
type Callback struct {
	Enabled           bool   `json:"enabled"`
	Key               string `json:"key" doc:"What they press"`
	OfferAfterSeconds int    `json:"offer_after_seconds"`
	MaxAttempts       int    `json:"max_attempts"`
}

// defaults returns the settings of a queue that sets none.
func defaults() Settings {
	return Settings{Strategy: "longest_idle", RingTimeout: 20, RetryDelay: 2, WrapUp: 10, MaxWait: 1800, JoinWhenNoAgents: true,
		Announce: Announce{EverySeconds: 60}, Callback: Callback{Key: "1", OfferAfterSeconds: 60, MaxAttempts: 3}, RecordingMode: "inherit",
		ServiceLevel: 20, ShortAbandon: 5, MissedOffersLimit: 3, MissedOffersPause: 60, RequiredSkills: map[string]int{},
		Dispositions: []Disposition{}}
}

// Wake is the bus subject on which the id of an organisation is published when its callers, agents or queues have
// changed. The dispatcher of that organisation then plans again.
const Wake = "wake.queues"

// Config holds the services that the package uses.
type Config struct {
	DB     *db.DB
	Orgs   *org.Service
	Agents *agent.Service
	Outbox *event.Outbox
	Bus    *bus.Bus
	Clock  clock.Clock // nil: the system clock
	Node   string

	Prompts         Prompts
	Destinations    Destinations
	Numbers         Numbers
	Flows           Flows
	PendingReleases PendingReleases
}

// Service manages queues. It is safe for concurrent use.
type Service struct {
	cfg       Config
	observers observers
	dirty     dirtyQueues
	talkCache talkCache
}

// New returns a service. It panics if a dependency is missing.
func New(c Config) *Service {
	c.Clock = clock.OrSystem(c.Clock)
	wiring.Check(c)
	return &Service{cfg: c, dirty: dirtyQueues{wake: make(chan struct{}, 1), queues: map[queueKey]struct{}{},
		lastPublished: map[queueKey]snapshot{}}}
}

// Get returns a queue that is not removed, or db.ErrNone.
func (s *Service) Get(ctx context.Context, q db.Querier, org, id string) (Queue, error) {
	return get(ctx, q, org, id)
}

// Missing returns the ids that are not queues of the organisation.
func (s *Service) Missing(ctx context.Context, q db.Querier, org string, queues []string) ([]string, error) {
	var missing []string
	for _, id := range queues {
		if _, err := get(ctx, q, org, id); db.IsNone(err) {
			missing = append(missing, id)
		} else if err != nil {
			return nil, err
		}
	}
	return missing, nil
}
