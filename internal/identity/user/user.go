// Package user stores the users of an organisation: their role, extension, do-not-disturb, forwarding and voicemail
// settings.
package user

import (
	"context"
	"fmt"
	"strings"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/wiring"
)

// Roles and states of users.
var (
	Roles    = access.Roles
	Statuses = []string{"invited", "active", "suspended", "removed"}
)

// Suspended is the state of a user without access. Removed is the state of a user whose row is kept for history only.
const (
	Suspended = "suspended"
	Removed   = "removed"
)

// User is a member of the organisation. Calls reach users by extension or by their numbers.
type User struct {
	ID               string         `json:"id" example:"usr_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Email            string         `json:"email"`
	FirstName        string         `json:"first_name"`
	LastName         string         `json:"last_name"`
	Name             string         `json:"name"`
	Role             string         `json:"role" enum:"owner,admin,supervisor,agent,viewer"`
	Status           string         `json:"status" enum:"invited,active,suspended,removed"`
	Extension        *string        `json:"extension" example:"101"`
	DirectNumberIDs  []string       `json:"direct_number_ids" nullable:"false"`
	OutboundNumberID *string        `json:"outbound_number_id"`
	Presence         Presence       `json:"presence"`
	DND              DND            `json:"dnd"`
	Timezone         *string        `json:"timezone" doc:"null: that of the organisation"`
	Language         *string        `json:"language" doc:"null: that of the organisation"`
	Skills           map[string]int `json:"skills"`
	QueueIDs         []string       `json:"queue_ids" nullable:"false"`
	Devices          []Device       `json:"devices" nullable:"false"`
	SIP              *SIP           `json:"sip" doc:"How a phone of the user logs in; null without a device"`
	RingStrategy     string         `json:"ring_strategy" enum:"all_devices,in_order"`
	Forward          Forward        `json:"forward"`
	Voicemail        Voicemail      `json:"voicemail"`
	RecordingMode    string         `json:"recording_mode" enum:"inherit,on,off"`
	MFAEnabled       bool           `json:"mfa_enabled"`
	CreatedAt        db.Time        `json:"created_at"`
	LastSeenAt       db.Time        `json:"last_seen_at" nullable:"true"`
	Invitation       *Invitation    `json:"invitation,omitempty" doc:"As the user is added, where they are invited"`

	OrgID      string  `json:"-"`
	UpdatedAt  db.Time `json:"-"`
	pin        *string // PIN to store; "": PIN to delete; nil: no change
	oldForward Forward // forwarding before a change

	oldExtension string  // extension before a change; "" if there was none
	oldGreeting  *string // greeting before a change
}

// keepOld keeps what a change is compared with.
func (u *User) keepOld() {
	u.oldForward, u.oldExtension, u.oldGreeting = u.Forward, u.extension(), u.Voicemail.GreetingAudioID
}

// Presence is the availability of a user. It is derived from do-not-disturb, phones and calls.
type Presence struct {
	Status string  `json:"status" enum:"available,ringing,busy,wrap_up,away,dnd,offline"`
	Reason *string `json:"reason" doc:"What the person gave, or of the platform: missed_offers, or browser_not_reachable"`
	Since  db.Time `json:"since" nullable:"true"`
	Until  db.Time `json:"until" nullable:"true"`
}

// DND is do-not-disturb, until a time or until it is switched off.
type DND struct {
	Enabled bool    `json:"enabled"`
	Until   db.Time `json:"until" nullable:"true"`
}

// On reports whether do-not-disturb is active at a time.
func (d DND) On(now time.Time) bool {
	return d.Enabled && (d.Until.IsZero() || now.Before(d.Until.Time))
}

// Device is a phone in the user's record.
type Device struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Registered bool   `json:"registered"`
}

// SIP holds the SIP account of a phone. The password is set only when it was just created.
type SIP struct {
	Username   string   `json:"username"`
	Domain     string   `json:"domain"`
	Transports []string `json:"transports" nullable:"false"`
	Password   *string  `json:"password,omitempty" secret:"true"`
}

// Forward holds the forward destinations for calls that the user does not answer. null: none.
type Forward struct {
	Always      *string `json:"always"`
	Busy        *string `json:"busy"`
	NoAnswer    *string `json:"no_answer"`
	Unreachable *string `json:"unreachable"`

	NoAnswerSeconds *int `json:"no_answer_seconds" doc:"How long the phones ring before no_answer or voicemail takes the call; null: 25"`
}

// RingTime returns how long the phones ring before the call goes elsewhere; 0 if the user has not chosen a time.
func (f Forward) RingTime() time.Duration {
	if f.NoAnswerSeconds == nil {
		return 0
	}
	return time.Duration(*f.NoAnswerSeconds) * time.Second
}

// byName returns the destinations by name.
func (f Forward) byName() map[string]*string {
	return map[string]*string{"always": f.Always, "busy": f.Busy, "no_answer": f.NoAnswer, "unreachable": f.Unreachable}
}

// Voicemail holds the settings of the user's mailbox.
type Voicemail struct {
	Enabled         bool    `json:"enabled"`
	GreetingAudioID *string `json:"greeting_audio_id"`
	EmailNotify     bool    `json:"email_notify"`
	EmailAudio      string  `json:"email_audio" enum:"attached,link" doc:"Whether the mails have the sound attached, beside the link to it"`
	PINSet          bool    `json:"pin_set" doc:"Whether the mailbox asks for a PIN by telephone"`
}

// The values of Voicemail.EmailAudio.
const (
	AudioAttached = "attached"
	AudioLink     = "link"
)

// Phones holds the devices and the SIP account of a user, from package device.
type Phones struct {
	Devices []Device
	SIP     *SIP
}

// Removal is the removal of a user. ReassignTo is the user who gets the numbers; "": none.
type Removal struct{ OrgID, UserID, ReassignTo string }

// Config has the dependencies of a Service.
type Config struct {
	DB     *db.DB
	Orgs   *org.Service
	Outbox *event.Outbox
	Bus    *bus.Bus
	Clock  clock.Clock `wiring:"optional"`

	Phones       PhoneStore
	Destinations Destinations
	Presences    Presences
	Logins       Logins
	Mailboxes    Mailboxes
	Queues       Queues
	Extensions   Extensions
	Invites      *Invites `wiring:"optional"` // nil: invitations are not enabled, and new users are active at once
}

// Service manages users. Create it with New. It is safe for concurrent use.
type Service struct {
	config    Config
	observers observers

	db     *db.DB
	orgs   *org.Service
	outbox *event.Outbox
	bus    *bus.Bus
	now    func() time.Time
}

// New returns a service. Add observers before the first request.
func New(c Config) *Service {
	wiring.Check(c)
	if c.Invites != nil {
		wiring.Check(*c.Invites)
	}
	return &Service{config: c, db: c.DB, orgs: c.Orgs, outbox: c.Outbox, bus: c.Bus, now: clock.OrSystem(c.Clock).Now}
}

// PhoneRegistered records that a phone of a user registered. An invited user becomes active.
func (s *Service) PhoneRegistered(ctx context.Context, tx db.Querier, org, device string) error {
	return wrapError(recordSeen(ctx, tx, org, device, db.At(s.now())), "record that a user was seen")
}

// Changed is the bus subject on which the id of a changed user is published.
const Changed = "changed.users"

// Get returns a user that is not removed, without phones, numbers and presence, or db.ErrNone.
func (s *Service) Get(ctx context.Context, q db.Querier, org, id string) (User, error) {
	u, err := get(ctx, q, org, id)
	if err == nil && u.Status == Removed {
		return u, db.ErrNone
	}
	return u, err
}

// ByExtension returns the user with the extension, as Get does.
func (s *Service) ByExtension(ctx context.Context, q db.Querier, org, extension string) (User, error) {
	return byExtension(ctx, q, org, extension)
}

func fullName(first, last string) string { return strings.TrimSpace(first + " " + last) }

// withDetails sets the fields that come from other packages.
func (s *Service) withDetails(ctx context.Context, q db.Querier, org string, users []User) error {
	ids := make([]string, len(users))
	for i, u := range users {
		ids[i] = u.ID
	}
	numbers, err := numbersOf(ctx, q, org, ids)
	if err != nil {
		return fmt.Errorf("find numbers of users: %w", err)
	}
	phones, err := s.config.Phones.PhonesOfUsers(ctx, q, org, ids)
	if err != nil {
		return fmt.Errorf("find phones of users: %w", err)
	}
	presences, err := s.config.Presences.Presences(ctx, q, org, ids)
	if err != nil {
		return fmt.Errorf("find presence of users: %w", err)
	}
	second, err := s.config.Logins.MFA(ctx, q, org, ids)
	if err != nil {
		return fmt.Errorf("find second factors of users: %w", err)
	}
	for i := range users {
		u := &users[i]
		u.MFAEnabled = second[u.ID]
		u.DirectNumberIDs = append(u.DirectNumberIDs, numbers[u.ID]...)
		u.Devices, u.SIP = append(u.Devices, phones[u.ID].Devices...), phones[u.ID].SIP
		u.Presence = u.presence(s.now())
		if p, known := presences[u.ID]; known {
			u.Presence = p
		}
	}
	return s.withQueues(ctx, q, org, ids, users)
}

// withQueues sets the queues of users.
func (s *Service) withQueues(ctx context.Context, q db.Querier, org string, ids []string, users []User) error {
	all, err := s.config.Queues.QueuesOfUsers(ctx, q, org, ids)
	if err != nil {
		return fmt.Errorf("find queues of users: %w", err)
	}
	for i := range users {
		users[i].QueueIDs = append([]string{}, all[users[i].ID]...)
	}
	return nil
}

// presence derives the presence from do-not-disturb and phones.
func (u User) presence(now time.Time) Presence {
	if u.DND.On(now) {
		return Presence{Status: "dnd", Until: u.DND.Until}
	}
	for _, d := range u.Devices {
		if d.Registered {
			return Presence{Status: "available"}
		}
	}
	return Presence{Status: "offline"}
}
