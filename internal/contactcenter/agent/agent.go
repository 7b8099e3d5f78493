// Package agent derives the presence of agents from their choice, their registered phones and their calls. Presence
// is derived on each read. The database keeps only the presence that was published last.
package agent

import (
	"context"
	"time"

	"soniq/internal/identity/user"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/wiring"
)

// Presences of an agent. An agent can choose Available, Away, DND and Offline.
const (
	Available = "available"
	Ringing   = "ringing"
	Busy      = "busy"
	WrapUp    = "wrap_up"
	Away      = "away"
	DND       = "dnd"
	Offline   = "offline"
)

// MissedOffers is the reason of agents who are away because they missed several offers in a row.
const MissedOffers = "missed_offers"

// BrowserNotReachable is the reason of an away presence that the platform sets if an agent's browser, the only phone, cannot take calls.
const BrowserNotReachable = "browser_not_reachable"

// Agent is a user in the role of answering calls.
type Agent struct {
	ID                string         `json:"id" example:"usr_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Name              string         `json:"name"`
	Email             string         `json:"email"`
	Extension         *string        `json:"extension"`
	Presence          user.Presence  `json:"presence"`
	Availability      string         `json:"availability" enum:"available,away,dnd,offline" doc:"What the person chose"`
	ActiveCallID      *string        `json:"active_call_id"`
	WrapUpUntil       db.Time        `json:"wrap_up_until" nullable:"true"`
	WrapUpCallID      *string        `json:"wrap_up_call_id" doc:"Call whose disposition is required: the wrap-up lasts until it is set"`
	DevicesRegistered int            `json:"devices_registered"`
	Queues            []Membership   `json:"queues" nullable:"false"`
	Skills            map[string]int `json:"skills"`
	Today             Today          `json:"today"`
}

// Membership is a queue of an agent.
type Membership struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	SignedIn bool   `json:"signed_in"`
	Paused   bool   `json:"paused"`
	Priority int    `json:"priority"`
}

// Today counts an agent's work since midnight in the organisation's time zone.
type Today struct {
	Answered             int `json:"answered"`
	Missed               int `json:"missed" doc:"Calls that rang the agent and that nobody answered"`
	TalkSeconds          int `json:"talk_seconds"`
	AvailableSeconds     int `json:"available_seconds"`
	AverageHandleSeconds int `json:"average_handle_seconds" doc:"Talk and hold, per answered call"`
}

// Zones returns the time zones of organisations.
type Zones interface {
	Zone(ctx context.Context, org string) (*time.Location, error)
}

// Config has the dependencies of the service. Clock may be nil. BrowserAway is how long a browser may be unreachable before its agent is
// away.
type Config struct {
	BrowserAway time.Duration

	DB     *db.DB
	Users  *user.Service
	Outbox *event.Outbox
	Clock  clock.Clock
	Zones  Zones
}

// Service reads and publishes the presence of agents. It is safe for concurrent use.
type Service struct {
	cfg       Config
	observers observers
	changed   changedSet
}

// New returns a service. Run must run for presence to be published.
func New(c Config) *Service {
	c.Clock = clock.OrSystem(c.Clock)
	wiring.Check(c)
	return &Service{cfg: c, changed: changedSet{wake: make(chan struct{}, 1), users: map[orgKey]struct{}{},
		calls: map[orgKey]struct{}{}, shown: map[orgKey]struct{}{}}}
}

// Presences returns the presence of users, by user id.
func (s *Service) Presences(ctx context.Context, q db.Querier, org string, users []string) (map[string]user.Presence, error) {
	if len(users) == 0 {
		return nil, nil
	}
	all, err := s.States(ctx, q, org, users)
	if err != nil {
		return nil, err
	}
	found := make(map[string]user.Presence, len(all))
	for _, x := range all {
		found[x.UserID] = x.Presence
		s.NoteShown(org, x)
	}
	return found, nil
}
