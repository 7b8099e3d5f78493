// Package device stores phones: their SIP credentials, registrations (bindings), provisioning addresses and browser
// tokens.
package device

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/identity/user"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/wiring"
)

// Device is a phone of a user.
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

	ProvisioningURL *string `json:"provisioning_url,omitempty" secret:"true" doc:"Where the phone fetches its configuration; given once, when it is made" example:"https://voice.example.com/provision/4flPC8RObyakWeFlm7ApnL/"`

	OrgID     string  `json:"-"`
	UpdatedAt db.Time `json:"-"`
	RotatedAt db.Time `json:"-"`
}

// SIP holds the SIP account of the phone. The password is set only when it is created.
type SIP struct {
	Username  string  `json:"username"`
	Domain    string  `json:"domain"`
	Transport string  `json:"transport" enum:"udp,tcp,tls"`
	Digest    string  `json:"digest" enum:"md5,sha256" doc:"The algorithm the phone is challenged with"`
	Password  *string `json:"password,omitempty" secret:"true"`
}

// LineKey is the function of one key of the phone.
type LineKey struct {
	Position int    `json:"position" minimum:"1" maximum:"200"`
	Type     string `json:"type" enum:"line,blf,speed_dial,queue,park"`
	Value    string `json:"value" maxLength:"120"`
	Label    string `json:"label" maxLength:"120"`
}

// Provisioning is the provisioning state of the phone.
type Provisioning struct {
	URL         *string `json:"url" secret:"true" doc:"The address, when it is made; null ever after" example:"https://voice.example.com/provision/4flPC8RObyakWeFlm7ApnL/"`
	Status      string  `json:"status" enum:"none,pending,served,failed" doc:"pending: not fetched yet; failed: the last request was refused"`
	LastFetchAt db.Time `json:"last_fetch_at" nullable:"true" doc:"When the phone was last given its configuration"`
}

// Registration summarises the current bindings of the phone.
type Registration struct {
	Status    string  `json:"status" enum:"registered,unregistered,expired"`
	Contact   *string `json:"contact"`
	UserAgent *string `json:"user_agent"`
	Transport *string `json:"transport"`
	ExpiresAt db.Time `json:"expires_at" nullable:"true"`
	RTTMS     *int    `json:"rtt_ms"`
}

// Changed is the bus subject on which the SIP user name of a changed device is published.
const Changed = "changed.devices"

const cacheLife = 3 * time.Second

// Service stores phones and serves their API. Create it with New. It is safe for concurrent use.
type Service struct {
	config    Config
	observers []RegistrationObserver

	db           *db.DB
	users        *user.Service
	sealer       Sealer
	bus          *bus.Bus
	now          func() time.Time
	domain       string
	accounts     *bus.Cache[Account]
	bindingCache *bindingCache
}

// New returns a service. Add observers before the first request.
func New(c Config) *Service {
	wiring.Check(c)
	now := clock.OrSystem(c.Clock).Now
	return &Service{config: c, db: c.DB, users: c.Users, sealer: c.Sealer, bus: c.Bus, now: now, domain: c.Domain,
		accounts: bus.NewCache[Account](c.Bus, Changed, cacheLife, now), bindingCache: newBindingCache(c.DB)}
}

// Get returns a device without its registration, or db.ErrNone.
func (s *Service) Get(ctx context.Context, q db.Querier, org, id string) (Device, error) {
	return getDevice(ctx, q, org, id)
}

// OfUser returns the active devices of a user in the order they were added.
func (s *Service) OfUser(ctx context.Context, q db.Querier, org, userID string) ([]Device, error) {
	return listDevices(ctx, q, org, filter{users: []string{userID}, active: true, limit: 100})
}

// Add creates a device with new credentials. The returned device contains the password, which is not available later.
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
	password, secrets, err := s.newCredentials(d)
	if err != nil {
		return d, err
	}
	d.SIP.Password = &password
	if err := insertDevice(ctx, tx, d, secrets); err != nil {
		return d, fmt.Errorf("add device: %w", err)
	}
	return d, nil
}

// AddFirstDevice creates the first phone of a new user.
func (s *Service) AddFirstDevice(ctx context.Context, tx db.Querier, u user.User) (user.SIP, error) {
	d, err := s.Add(ctx, tx, Device{OrgID: u.OrgID, UserID: u.ID, Name: "Phone", Kind: "softphone", SRTP: "off"})
	return user.SIP{Username: d.SIP.Username, Domain: s.domain, Transports: transports, Password: d.SIP.Password}, err
}

var transports = []string{"udp", "tcp"}

// PhonesOfUsers returns the phones of users, for the users' records.
func (s *Service) PhonesOfUsers(ctx context.Context, q db.Querier, org string, users []string) (map[string]user.Phones, error) {
	if len(users) == 0 {
		return nil, nil
	}
	all, err := listDevices(ctx, q, org, filter{users: users, limit: 200 * len(users)})
	if err != nil {
		return nil, err
	}
	if err := s.addComputed(ctx, q, org, all); err != nil {
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

// SuspendUser ends the registrations and browser tokens of a suspended user.
func (s *Service) SuspendUser(ctx context.Context, tx db.Querier, u user.User) error {
	if u.Status != user.Suspended {
		return nil
	}
	all, err := listDevices(ctx, tx, u.OrgID, filter{users: []string{u.ID}, limit: 10_000})
	if err != nil {
		return err
	}
	for _, d := range all {
		if err := s.endRegistration(ctx, tx, u.OrgID, d.ID); err != nil {
			return err
		}
		if err := deleteTokens(ctx, tx, u.OrgID, d.ID); err != nil {
			return fmt.Errorf("end tokens: %w", err)
		}
		s.publishChanged(tx, d)
	}
	return nil
}

// RemoveUser deletes the phones of a removed user.
func (s *Service) RemoveUser(ctx context.Context, tx db.Querier, r user.Removal) error {
	all, err := listDevices(ctx, tx, r.OrgID, filter{users: []string{r.UserID}, limit: 10_000})
	if err != nil {
		return err
	}
	for _, d := range all {
		if err := s.removeDevice(ctx, tx, d); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) removeDevice(ctx context.Context, tx db.Querier, d Device) error {
	if err := s.endRegistration(ctx, tx, d.OrgID, d.ID); err != nil {
		return err
	}
	if err := deleteDevice(ctx, tx, d.OrgID, d.ID); err != nil {
		return fmt.Errorf("remove device: %w", err)
	}
	s.publishChanged(tx, d)
	return nil
}

func (s *Service) publishChanged(tx db.Querier, d Device) {
	db.OnCommit(tx, func() {
		s.bus.Publish(Changed, d.SIP.Username)
		s.registrationChanged(d.OrgID, d.UserID)
	})
}

// addComputed adds registration, emergency calling, domain and provisioning state to phones.
func (s *Service) addComputed(ctx context.Context, q db.Querier, org string, all []Device) error {
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
	if ok, err := s.HasEmergencyRoute(ctx, org); err != nil {
		return fmt.Errorf("find emergency setting: %w", err)
	} else if ok {
		emergency = "available"
	}
	for i := range all {
		d := &all[i]
		d.SIP.Domain, d.Emergency = s.domain, emergency
		d.Registration = summarizeBindings(bindings[d.ID], s.now())
	}
	return s.addProvisioning(ctx, q, org, all)
}

// HasEmergencyRoute reports whether the phones of an organisation can call emergency services.
func (s *Service) HasEmergencyRoute(ctx context.Context, org string) (bool, error) {
	return s.config.Emergency.HasEmergencyRoute(ctx, org)
}

// summarizeBindings returns the registration of a phone from the binding that expires last.
func summarizeBindings(all []Binding, now time.Time) Registration {
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
