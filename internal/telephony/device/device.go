// Package device keeps phones: how they log in, and where they can be reached.
package device

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/identity/user"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// A Device is a phone of a user.
type Device struct {
	ID           string       `json:"id" example:"dev_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	UserID       string       `json:"user_id"`
	Name         string       `json:"name"`
	Kind         string       `json:"kind" enum:"desk_phone,softphone,webrtc,ata,mobile,gateway"`
	MAC          *string      `json:"mac" example:"00:15:65:ab:cd:ef"`
	Vendor       *string      `json:"vendor"`
	Model        *string      `json:"model"`
	Firmware     *string      `json:"firmware" doc:"The version that the phone told when it last fetched its configuration"`
	TemplateID   *string      `json:"template_id"`
	SIP          SIP          `json:"sip"`
	SRTP         string       `json:"srtp" enum:"off,preferred,required"`
	Codecs       []string     `json:"codecs" nullable:"false" doc:"In order of preference; empty: all that are known"`
	LineKeys     []LineKey    `json:"line_keys" nullable:"false"`
	Provisioning Provisioning `json:"provisioning"`
	Registration Registration `json:"registration"`
	Status       string       `json:"status" enum:"active,disabled"`
	Emergency    string       `json:"emergency_calling" enum:"available,not_available"`
	Location     *org.Civic   `json:"emergency_location" doc:"Where the phone is, for emergency services; null: where the organisation says"`
	LastSeenAt   db.Time      `json:"last_seen_at" nullable:"true"`
	CreatedAt    db.Time      `json:"created_at"`

	ProvisioningURL *string `json:"provisioning_url,omitempty" doc:"Where the phone fetches its configuration; given once, when it is made" example:"https://voice.example.com/provision/4flPC8RObyakWeFlm7ApnL/"`

	OrgID     string  `json:"-"`
	UpdatedAt db.Time `json:"-"`
	RotatedAt db.Time `json:"-"`
}

// SIP is how the phone logs in. The password is given once, when it is made.
type SIP struct {
	Username  string  `json:"username"`
	Domain    string  `json:"domain"`
	Transport string  `json:"transport" enum:"udp,tcp,tls"`
	Digest    string  `json:"digest" enum:"md5,sha256" doc:"The algorithm the phone is challenged with"`
	Password  *string `json:"password,omitempty"`
}

// A LineKey is a button of the phone.
type LineKey struct {
	Position int    `json:"position" minimum:"1" maximum:"200"`
	Type     string `json:"type" enum:"line,blf,speed_dial,queue,park"`
	Value    string `json:"value" maxLength:"120"`
	Label    string `json:"label" maxLength:"120"`
}

// Provisioning is how the phone fetches its configuration.
type Provisioning struct {
	URL         *string `json:"url" doc:"The address, when it is made; null ever after" example:"https://voice.example.com/provision/4flPC8RObyakWeFlm7ApnL/"`
	Status      string  `json:"status" enum:"none,pending,served,failed" doc:"pending: not fetched yet; failed: the last request was refused"`
	LastFetchAt db.Time `json:"last_fetch_at" nullable:"true" doc:"When the phone was last given its configuration"`
}

// Registration is where the phone is now.
type Registration struct {
	Status    string  `json:"status" enum:"registered,unregistered,expired"`
	Contact   *string `json:"contact"`
	UserAgent *string `json:"user_agent"`
	Transport *string `json:"transport"`
	ExpiresAt db.Time `json:"expires_at" nullable:"true"`
	RTTMS     *int    `json:"rtt_ms"`
}

// A Sealer encrypts what is stored; the associated data binds a value to its place.
type Sealer interface {
	Seal(plain, associated []byte) ([]byte, error)
	Unseal(sealed, associated []byte) ([]byte, error)
}

// Changed is the bus subject on which the SIP user name of a changed device is published.
const Changed = "changed.devices"

const cacheLife = 3 * time.Second

// Service is the room. It is safe for concurrent use.
type Service struct {
	// Emergency reports whether the organisation's phones reach emergency services; nil: no.
	Emergency func(ctx context.Context, org string) (bool, error)

	// Notify sends a phone a NOTIFY and returns the status of its answer; an error says that there was none. nil: phones cannot be reached.
	Notify func(ctx context.Context, b Binding, aor, event string) (status int, err error)
	// OnMove is told, once that is committed, whose phone signed in or out; may be nil.
	OnMove func(org, userID string)

	// Browsers is what telephones in pages need.
	Browsers Browsers

	// Provisioner is what addresses need from which phones fetch their configuration.
	Provisioner Provisioner

	// Outbox is told of phones that come and go; nil: nobody is.
	Outbox *event.Outbox

	db       *db.DB
	users    *user.Service
	sealer   Sealer
	bus      *bus.Bus
	now      func() time.Time
	domain   string
	accounts *bus.Cache[Account]
	reached  *reached
}

// New makes the room. Domain is the SIP domain and digest realm of every phone; changing it makes the passwords
// that were given out useless.
func New(d *db.DB, users *user.Service, s Sealer, b *bus.Bus, now func() time.Time, domain string) *Service {
	return &Service{db: d, users: users, sealer: s, bus: b, now: now, domain: domain,
		accounts: bus.NewCache[Account](b, Changed, cacheLife, now), reached: newReached(d)}
}

// Get returns a device without its registration, or db.ErrNone.
func (s *Service) Get(ctx context.Context, q db.Querier, org, id string) (Device, error) {
	return get(ctx, q, org, id)
}

// OfUser returns the active devices of a user in the order they were added.
func (s *Service) OfUser(ctx context.Context, q db.Querier, org, userID string) ([]Device, error) {
	return list(ctx, q, org, filter{users: []string{userID}, active: true, limit: 100})
}

// Add makes a device with fresh credentials; the password is in it this once.
func (s *Service) Add(ctx context.Context, tx db.Querier, d Device) (Device, error) {
	now := db.At(s.now())
	d.ID, d.Status, d.CreatedAt, d.UpdatedAt, d.RotatedAt = db.NewID("dev"), "active", now, now, now
	d.SIP.Username, d.SIP.Domain = newUsername(), s.domain
	if d.SIP.Transport == "" {
		d.SIP.Transport = "udp"
	}
	if d.SIP.Digest == "" {
		d.SIP.Digest = "md5"
	}
	password, secrets, err := s.newSecrets(d)
	if err != nil {
		return d, err
	}
	d.SIP.Password = &password
	if err := insert(ctx, tx, d, secrets); err != nil {
		return d, fmt.Errorf("add device: %w", err)
	}
	return d, nil
}

// Provision makes the first phone of a new user.
func (s *Service) Provision(ctx context.Context, tx db.Querier, u user.User) (user.SIP, error) {
	d, err := s.Add(ctx, tx, Device{OrgID: u.OrgID, UserID: u.ID, Name: "Phone", Kind: "softphone", SRTP: "off"})
	return user.SIP{Username: d.SIP.Username, Domain: s.domain, Transports: transports, Password: d.SIP.Password}, err
}

var transports = []string{"udp", "tcp"}

// Phones tells the phones of users, for their records.
func (s *Service) Phones(ctx context.Context, q db.Querier, org string, users []string) (map[string]user.Phones, error) {
	if len(users) == 0 {
		return nil, nil
	}
	all, err := list(ctx, q, org, filter{users: users, limit: 200 * len(users)})
	if err != nil {
		return nil, err
	}
	if err := s.dress(ctx, q, org, all); err != nil {
		return nil, err
	}
	phones := map[string]user.Phones{}
	for _, d := range all {
		p := phones[d.UserID]
		p.Devices = append(p.Devices, user.Device{ID: d.ID, Name: d.Name, Registered: d.Registration.Status == "registered"})
		if p.SIP == nil {
			p.SIP = &user.SIP{Username: d.SIP.Username, Domain: s.domain, Transports: transports}
		}
		phones[d.UserID] = p
	}
	return phones, nil
}

// SuspendUser ends the registrations of a user who is suspended.
func (s *Service) SuspendUser(ctx context.Context, tx db.Querier, u user.User) error {
	if u.Status != user.Suspended {
		return nil
	}
	all, err := list(ctx, tx, u.OrgID, filter{users: []string{u.ID}, limit: 10_000})
	if err != nil {
		return err
	}
	for _, d := range all {
		if err := s.tellChange(ctx, tx, u.OrgID, d.ID, nil); err != nil {
			return err
		}
		if err := unregister(ctx, tx, u.OrgID, d.ID); err != nil {
			return fmt.Errorf("end registration: %w", err)
		}
		if err := dropTokens(ctx, tx, u.OrgID, d.ID); err != nil {
			return fmt.Errorf("end tokens: %w", err)
		}
		s.changed(tx, d)
	}
	return nil
}

// RemoveUser ends the phones of a user who is removed.
func (s *Service) RemoveUser(ctx context.Context, tx db.Querier, r user.Removal) error {
	all, err := list(ctx, tx, r.OrgID, filter{users: []string{r.UserID}, limit: 10_000})
	if err != nil {
		return err
	}
	for _, d := range all {
		if err := s.remove(ctx, tx, d); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) remove(ctx context.Context, tx db.Querier, d Device) error {
	if err := unregister(ctx, tx, d.OrgID, d.ID); err != nil {
		return fmt.Errorf("end registration: %w", err)
	}
	if err := remove(ctx, tx, d.OrgID, d.ID); err != nil {
		return fmt.Errorf("remove device: %w", err)
	}
	s.changed(tx, d)
	return nil
}

func (s *Service) changed(tx db.Querier, d Device) {
	db.OnCommit(tx, func() {
		s.bus.Publish(Changed, d.SIP.Username)
		if s.OnMove != nil {
			s.OnMove(d.OrgID, d.UserID)
		}
	})
}

// dress adds registration and what follows from it.
func (s *Service) dress(ctx context.Context, q db.Querier, org string, all []Device) error {
	if len(all) == 0 {
		return nil
	}
	ids := make([]string, len(all))
	for i, d := range all {
		ids[i] = d.ID
	}
	bindings, err := bindings(ctx, q, org, ids, db.Time{})
	if err != nil {
		return fmt.Errorf("find registrations: %w", err)
	}
	emergency := "not_available"
	if s.Emergency != nil {
		if ok, err := s.Emergency(ctx, org); err != nil {
			return fmt.Errorf("find emergency setting: %w", err)
		} else if ok {
			emergency = "available"
		}
	}
	for i := range all {
		d := &all[i]
		d.SIP.Domain, d.Emergency = s.domain, emergency
		d.Registration = registration(bindings[d.ID], s.now())
	}
	return s.provisioned(ctx, q, org, all)
}

// registration sums up bindings: the one that lives longest stands for all.
func registration(all []Binding, now time.Time) Registration {
	r := Registration{Status: "unregistered"}
	for _, b := range all {
		if b.Expires.After(r.ExpiresAt.Time) {
			r = Registration{Status: "registered", Contact: &b.Contact, UserAgent: db.Null(b.UserAgent).Ptr(),
				Transport: &b.Transport, ExpiresAt: db.At(b.Expires)}
		}
	}
	if r.Status == "registered" && !now.Before(r.ExpiresAt.Time) {
		r.Status = "expired"
	}
	return r
}
