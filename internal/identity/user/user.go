// Package user keeps the people of an organisation: their role, extension and do-not-disturb.
package user

import (
	"context"
	"fmt"
	"strings"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// The roles and states of users.
var (
	Roles    = []string{"owner", "admin", "supervisor", "agent", "viewer"}
	Statuses = []string{"invited", "active", "suspended", "removed"}
)

// Suspended is the state of a user who cannot do anything, and Removed of one who is kept for history only.
const (
	Suspended = "suspended"
	Removed   = "removed"
)

// A User is a person of the organisation. Calls find them by extension or by a number of theirs.
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

	OrgID     string  `json:"-"`
	UpdatedAt db.Time `json:"-"`
	pin       *string // to be kept; "": to be forgotten
	was       Forward // before a change
}

// Presence is whether somebody can be reached. It is derived: from do-not-disturb and from phones.
type Presence struct {
	Status string  `json:"status" enum:"available,ringing,busy,wrap_up,away,dnd,offline"`
	Reason *string `json:"reason"`
	Since  db.Time `json:"since" nullable:"true"`
	Until  db.Time `json:"until" nullable:"true"`
}

// DND is do-not-disturb, until a time or until it is switched off.
type DND struct {
	Enabled bool    `json:"enabled"`
	Until   db.Time `json:"until" nullable:"true"`
}

// On reports whether the user is not to be disturbed at a time.
func (d DND) On(now time.Time) bool {
	return d.Enabled && (d.Until.IsZero() || now.Before(d.Until.Time))
}

// Device is a phone of a user, as far as the user's record tells.
type Device struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Registered bool   `json:"registered"`
}

// SIP is how a phone logs in. The password is given once, when it is made.
type SIP struct {
	Username   string   `json:"username"`
	Domain     string   `json:"domain"`
	Transports []string `json:"transports" nullable:"false"`
	Password   *string  `json:"password,omitempty"`
}

// Forward is where calls go that the user does not take; null means nowhere.
type Forward struct {
	Always      *string `json:"always"`
	Busy        *string `json:"busy"`
	NoAnswer    *string `json:"no_answer"`
	Unreachable *string `json:"unreachable"`
}

// each is every destination by its name.
func (f Forward) each() map[string]*string {
	return map[string]*string{"always": f.Always, "busy": f.Busy, "no_answer": f.NoAnswer, "unreachable": f.Unreachable}
}

// Voicemail is the user's answering machine.
type Voicemail struct {
	Enabled         bool    `json:"enabled"`
	GreetingAudioID *string `json:"greeting_audio_id"`
	EmailNotify     bool    `json:"email_notify"`
	PINSet          bool    `json:"pin_set" doc:"Whether the mailbox asks for a PIN by telephone"`
}

// Phones is what the room of phones knows of one user.
type Phones struct {
	Devices []Device
	SIP     *SIP
}

// A Removal is a user who leaves, and who takes over what was theirs ("" for nobody).
type Removal struct{ OrgID, UserID, ReassignTo string }

// Queues keeps which queues users answer.
type Queues interface {
	// Missing returns those of the queues that the organisation does not have.
	Missing(ctx context.Context, q db.Querier, org string, queues []string) ([]string, error)
	// OfUsers tells the queues of users, by the user's id.
	OfUsers(ctx context.Context, q db.Querier, org string, users []string) (map[string][]string, error)
	// Join makes a user a member of these queues and of no others.
	Join(ctx context.Context, tx db.Querier, org, user string, queues []string) error
}

// Service is the room. The function fields are set before the first request and may stay nil.
type Service struct {
	// Provision gives a new user a phone and returns how it logs in.
	Provision func(ctx context.Context, tx db.Querier, u User) (SIP, error)
	// Phones tells the phones of users, by the user's id.
	Phones func(ctx context.Context, q db.Querier, org string, users []string) (map[string]Phones, error)
	// Reach says what is wrong with a destination of forwarded calls, or "".
	Reach func(ctx context.Context, org, to string) (wrong string, err error)
	// OnRemove is called for a user who is removed, in the same transaction.
	OnRemove []func(ctx context.Context, tx db.Querier, r Removal) error
	// OnStatus is called for a user who is suspended, or is active again, in the same transaction.
	OnStatus []func(ctx context.Context, tx db.Querier, u User) error
	// Invites is what inviting needs; without it users are active as they are added.
	Invites Invites
	// OnChange is called for a user who was added or changed, in the same transaction.
	OnChange []func(ctx context.Context, tx db.Querier, u User) error
	// Presences tells what users do, by the user's id; nil: what follows from their phones and do-not-disturb.
	Presences func(ctx context.Context, q db.Querier, org string, users []string) (map[string]Presence, error)
	// MFA tells which users sign in with a second factor; nil: none.
	MFA func(ctx context.Context, q db.Querier, org string, users []string) (map[string]bool, error)
	// KeepPIN keeps the PIN of a user's mailbox, or forgets it with "".
	KeepPIN func(ctx context.Context, tx db.Querier, org, user, pin string) error
	// Queues are the queues users answer; nil where there are none.
	Queues Queues
	// Reserved reports whether an extension must not be given away in a country, as those that reach the police.
	Reserved func(country, extension string) bool

	db     *db.DB
	orgs   *org.Service
	outbox *event.Outbox
	bus    *bus.Bus
	now    func() time.Time
}

// New makes the room.
func New(d *db.DB, orgs *org.Service, outbox *event.Outbox, b *bus.Bus, now func() time.Time) *Service {
	return &Service{db: d, orgs: orgs, outbox: outbox, bus: b, now: now}
}

// SignedIn notes that a phone of a user logged in: whoever was invited is in.
func (s *Service) SignedIn(ctx context.Context, tx db.Querier, org, device string) error {
	return wrap(signedIn(ctx, tx, org, device, db.At(s.now())), "note that a user was seen")
}

// Changed is the bus subject on which the id of a changed user is published.
const Changed = "changed.users"

// Get returns a user who is not removed, without phones, numbers and presence, or db.ErrNone.
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

// dress adds what other rooms know of the users.
func (s *Service) dress(ctx context.Context, q db.Querier, org string, users []User) error {
	ids := make([]string, len(users))
	for i, u := range users {
		ids[i] = u.ID
	}
	numbers, err := numbersOf(ctx, q, org, ids)
	if err != nil {
		return fmt.Errorf("find numbers of users: %w", err)
	}
	phones := map[string]Phones{}
	if s.Phones != nil {
		if phones, err = s.Phones(ctx, q, org, ids); err != nil {
			return fmt.Errorf("find phones of users: %w", err)
		}
	}
	presences := map[string]Presence{}
	if s.Presences != nil {
		if presences, err = s.Presences(ctx, q, org, ids); err != nil {
			return fmt.Errorf("find presence of users: %w", err)
		}
	}
	second := map[string]bool{}
	if s.MFA != nil {
		if second, err = s.MFA(ctx, q, org, ids); err != nil {
			return fmt.Errorf("find second factors of users: %w", err)
		}
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
	return s.dressQueues(ctx, q, org, ids, users)
}

// dressQueues adds the queues users answer.
func (s *Service) dressQueues(ctx context.Context, q db.Querier, org string, ids []string, users []User) error {
	if s.Queues == nil {
		return nil
	}
	all, err := s.Queues.OfUsers(ctx, q, org, ids)
	if err != nil {
		return fmt.Errorf("find queues of users: %w", err)
	}
	for i := range users {
		users[i].QueueIDs = append([]string{}, all[users[i].ID]...)
	}
	return nil
}

// presence derives whether a user can be reached.
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
