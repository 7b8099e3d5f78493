// Package contact stores the contacts of an organisation, and looks up numbers and e-mail addresses in them and in connected systems. It
// publishes screen pops for ringing calls.
package contact

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"

	"soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/wiring"
)

// Contact is a person or a company that the organisation knows.
type Contact struct {
	ID              string            `json:"id" example:"con_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	FirstName       string            `json:"first_name"`
	LastName        string            `json:"last_name"`
	Name            string            `json:"name" doc:"First and last name, or the company where there is neither"`
	Company         string            `json:"company"`
	Title           string            `json:"title"`
	Phones          []Phone           `json:"phones" nullable:"false"`
	Emails          []Email           `json:"emails" nullable:"false"`
	Source          string            `json:"source" doc:"Where the contact comes from: api or import"`
	ExternalRefs    []Ref             `json:"external_refs" nullable:"false" doc:"The same person in connected systems"`
	OwnerUserID     *string           `json:"owner_user_id"`
	Tags            []string          `json:"tags" nullable:"false"`
	VIP             bool              `json:"vip"`
	DoNotCall       bool              `json:"do_not_call"`
	Custom          map[string]string `json:"custom"`
	NotesCount      int               `json:"notes_count"`
	LastContactedAt db.Time           `json:"last_contacted_at" nullable:"true"`
	CreatedAt       db.Time           `json:"created_at"`
	UpdatedAt       db.Time           `json:"updated_at"`

	OrgID string `json:"-"`
}

// Phone is a number of a contact.
type Phone struct {
	Number    string `json:"number" maxLength:"60" doc:"E.164; accepted as people write it in the organisation's country, with an extension too" example:"+442079460018"`
	Label     string `json:"label,omitempty" maxLength:"40" example:"mobile"`
	Primary   bool   `json:"primary,omitempty"`
	Extension string `json:"extension,omitempty" maxLength:"12"`
	Written   string `json:"written,omitempty" maxLength:"60" doc:"As it was given; ignored in requests"`
}

// Email is an e-mail address of a contact.
type Email struct {
	Value   string `json:"value" maxLength:"254" example:"ada@example.com"`
	Label   string `json:"label,omitempty" maxLength:"40"`
	Primary bool   `json:"primary,omitempty"`
}

// Ref is the record of the contact in a connected system.
type Ref struct {
	ConnectionID string  `json:"connection_id"`
	Provider     string  `json:"provider"`
	ExternalID   string  `json:"external_id"`
	URL          *string `json:"url"`
	SyncStatus   string  `json:"sync_status" enum:"pending,synced,failed,conflict"`
	SyncedAt     db.Time `json:"synced_at" nullable:"true"`
	Error        *string `json:"error"`
}

// Files stores uploads until they are imported; *blob.Dir implements it.
type Files interface {
	Put(ctx context.Context, name string, from io.Reader) (size int64, err error)
	Open(ctx context.Context, name string) (io.ReadSeekCloser, int64, error)
	Delete(ctx context.Context, name string) error
}

// Config has the dependencies of a Service.
type Config struct {
	DB     *db.DB
	Orgs   *org.Service
	Outbox *event.Outbox
	Jobs   *job.Queue
	Files  Files
	Log    *slog.Logger
	Clock  clock.Clock `wiring:"optional"`
	Timer  Timer       `wiring:"optional"` // of waits for connected systems; nil: the machine's

	Sources  Sources
	Systems  Systems
	Calls    Calls
	Memory   Memory
	Timeline []TimelineSource // calls, messages and voicemail; notes are built in
}

// Service manages contacts. Create it with New. It is safe for concurrent use.
type Service struct {
	cfg       Config
	observers observers
	results   *cache
	inFlight  singleflightGroup
	running   sync.WaitGroup
	stopCtx   context.Context
	stop      context.CancelFunc
}

// New returns a service. Add observers before the first request. Close must follow.
func New(c Config) *Service {
	wiring.Check(c)
	c.Clock = clock.OrSystem(c.Clock)
	if c.Timer == nil {
		c.Timer = systemTimer{}
	}
	s := &Service{cfg: c, results: newCache()}
	s.inFlight.byKey = map[string]*singleflight{}
	s.stopCtx, s.stop = context.WithCancel(context.Background())
	return s
}

// Close cancels lookups in progress and waits for their end.
func (s *Service) Close() {
	s.stop()
	s.running.Wait()
	s.results.close()
}

// country returns the country of numbers without a country code.
func (s *Service) country(ctx context.Context) (string, error) {
	o, err := s.cfg.Orgs.Get(ctx, access.Org(ctx))
	return o.Country, err
}

// EventContact returns the contact as it is shown in calls and events.
func (c Contact) EventContact(source string) event.Contact {
	return event.Contact{ID: c.ID, Name: c.Name, Company: c.Company, Source: source}
}

// complete sets the derived fields: the name, and the primary number and address.
func (c *Contact) complete() {
	c.Name = strings.TrimSpace(c.FirstName + " " + c.LastName)
	if c.Name == "" {
		c.Name = c.Company
	}
	if c.Name == "" && len(c.Emails) > 0 {
		c.Name = c.Emails[0].Value
	}
	if c.Name == "" && len(c.Phones) > 0 {
		c.Name = c.Phones[0].Number
	}
	firstIsPrimary(c.Phones, func(p *Phone) *bool { return &p.Primary })
	firstIsPrimary(c.Emails, func(e *Email) *bool { return &e.Primary })
}

// firstIsPrimary makes exactly one entry of a list primary: the first that is marked, or the first.
func firstIsPrimary[T any](all []T, primary func(*T) *bool) {
	chosen := 0
	for i := range all {
		if *primary(&all[i]) {
			chosen = i
			break
		}
	}
	for i := range all {
		*primary(&all[i]) = i == chosen
	}
}
