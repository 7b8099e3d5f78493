// Package agent tells what people who answer calls do now: what they chose, whether a phone of theirs is there, and the calls they
// are on. Presence is derived from those facts each time it is asked for; what is kept is what was told of it last.
package agent

import (
	"context"
	"time"

	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// The presences of an agent. Available, Away, DND and Offline are also what an agent can choose.
const (
	Available = "available"
	Ringing   = "ringing"
	Busy      = "busy"
	WrapUp    = "wrap_up"
	Away      = "away"
	DND       = "dnd"
	Offline   = "offline"
)

// MissedOffers is the reason of agents who are away because they did not answer offer after offer.
const MissedOffers = "missed_offers"

// An Agent is a user as one who answers calls.
type Agent struct {
	ID                string         `json:"id" example:"usr_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Name              string         `json:"name"`
	Email             string         `json:"email"`
	Extension         *string        `json:"extension"`
	Presence          user.Presence  `json:"presence"`
	Availability      string         `json:"availability" enum:"available,away,dnd,offline" doc:"What the person chose"`
	ActiveCallID      *string        `json:"active_call_id"`
	WrapUpUntil       db.Time        `json:"wrap_up_until" nullable:"true"`
	DevicesRegistered int            `json:"devices_registered"`
	Queues            []Membership   `json:"queues" nullable:"false"`
	Skills            map[string]int `json:"skills"`
	Today             Today          `json:"today"`
}

// A Membership is a queue that an agent answers.
type Membership struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	SignedIn bool   `json:"signed_in"`
	Paused   bool   `json:"paused"`
	Priority int    `json:"priority"`
}

// Today is what an agent did since midnight, where the organisation is.
type Today struct {
	Answered             int `json:"answered"`
	Missed               int `json:"missed" doc:"Calls that rang the agent and that nobody answered"`
	TalkSeconds          int `json:"talk_seconds"`
	AvailableSeconds     int `json:"available_seconds"`
	AverageHandleSeconds int `json:"average_handle_seconds" doc:"Talk and hold, per answered call"`
}

// Config is what the room is made of.
type Config struct {
	DB     *db.DB
	Users  *user.Service
	Outbox *event.Outbox
	Now    func() time.Time
	// Zone is the time zone of an organisation.
	Zone func(ctx context.Context, org string) (*time.Location, error)
}

// Service is the room. It is safe for concurrent use.
type Service struct {
	// OnPresence is called for agents whose presence has changed, in the transaction that tells of it; may be nil.
	OnPresence func(ctx context.Context, tx db.Querier, org string, users []string) error
	// OnReady is called for an agent who chose to be available, which ends wrap-up, in the transaction of that; may be nil.
	OnReady func(ctx context.Context, tx db.Querier, org, id string) error

	Config
	touched touched
}

// New makes the room.
func New(c Config) *Service {
	return &Service{Config: c, touched: touched{wake: make(chan struct{}, 1), users: map[person]struct{}{}, calls: map[person]struct{}{}}}
}

// Presences tells what users do, by their ids: for their records.
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
	}
	return found, nil
}
