// Package contact keeps the people an organisation knows, finds who a number belongs to, in the organisation's own contacts
// and in the systems it has connected, and tells agents who calls.
package contact

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
)

// A Contact is a person the organisation knows.
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

// A Phone is a number of a contact.
type Phone struct {
	Number    string `json:"number" maxLength:"60" doc:"E.164; accepted as people write it in the organisation's country, with an extension too" example:"+442079460018"`
	Label     string `json:"label,omitempty" maxLength:"40" example:"mobile"`
	Primary   bool   `json:"primary,omitempty"`
	Extension string `json:"extension,omitempty" maxLength:"12"`
	Written   string `json:"written,omitempty" maxLength:"60" doc:"As it was given; ignored in requests"`
}

// An Email is an address of a contact.
type Email struct {
	Value   string `json:"value" maxLength:"254" example:"ada@example.com"`
	Label   string `json:"label,omitempty" maxLength:"40"`
	Primary bool   `json:"primary,omitempty"`
}

// A Ref is the same person in a connected system.
type Ref struct {
	ConnectionID string  `json:"connection_id"`
	Provider     string  `json:"provider"`
	ExternalID   string  `json:"external_id"`
	URL          *string `json:"url"`
	SyncStatus   string  `json:"sync_status" enum:"pending,synced,failed,conflict"`
	SyncedAt     db.Time `json:"synced_at" nullable:"true"`
	Error        *string `json:"error"`
}

// Files is where uploads lie until they are read; *blob.Dir is one.
type Files interface {
	Put(ctx context.Context, name string, from io.Reader) (size int64, err error)
	Open(ctx context.Context, name string) (io.ReadSeekCloser, int64, error)
	Delete(ctx context.Context, name string) error
}

// Service is the room. The function fields are set before the first request; those that may be nil say so.
type Service struct {
	DB     *db.DB
	Orgs   *org.Service
	Outbox *event.Outbox
	Jobs   *job.Queue
	Files  Files
	Log    *slog.Logger
	Now    func() time.Time

	// Connected are the systems of an organisation, in the order of their priority; nil where there are none.
	Connected func(ctx context.Context, org string) ([]Connected, error)
	// Refs are the same persons in connected systems, by contact; may be nil.
	Refs func(ctx context.Context, q db.Querier, org string, contacts []string) (map[string][]Ref, error)
	// OnSave is called for a contact that was made or changed, in the same transaction; only names connections, nil all.
	OnSave func(ctx context.Context, tx db.Querier, c Contact, only []string) error
	// CanSave lists which of the named connections cannot be written to; may be nil.
	CanSave func(ctx context.Context, org string, connections []string) ([]op.Violation, error)
	// OnNote is called for a note that is to be written to connected systems, in the same transaction; may be nil.
	OnNote func(ctx context.Context, tx db.Querier, org string, n call.Note) error
	// Remember is told of a note in the transaction that writes it; may be nil.
	Remember func(ctx context.Context, tx db.Querier, org string, n call.Note) error
	// NoteSyncs tells how far notes have come; may be nil.
	NoteSyncs func(ctx context.Context, q db.Querier, org string, notes []string) (map[string][]call.NoteSync, error)
	// OnMerge and OnDelete are called in the transaction that merges two contacts, or deletes one.
	OnMerge  []func(ctx context.Context, tx db.Querier, org, from string, into Contact) error
	OnDelete []func(ctx context.Context, tx db.Querier, org, id string) error
	// OnErase is called before OnDelete where a contact is not only deleted, but erased.
	OnErase []func(ctx context.Context, tx db.Querier, org, id string) error
	// Erase removes what is remembered of a number in E.164. Must be set.
	Erase func(ctx context.Context, tx db.Querier, org, number string) error
	// Lines are the rooms whose doings stand in a timeline.
	Lines []func(ctx context.Context, org string, q LineQuery) ([]Item, error)
	// Past tells of the calls and the memory of a number, for screen pops; may be nil. Memory says whether it may be told.
	Past func(ctx context.Context, org, number string, memory bool) (Past, error)
	// CallNumber is the number outside that a call is with; db.ErrNone where there is no such call.
	CallNumber func(ctx context.Context, org, callID string) (number string, err error)
	// CallQueue is the queue a call came into; nil where it is in none, or the call is not known. May be nil.
	CallQueue func(ctx context.Context, org, callID string) (*call.Named, error)
	// OnKnown is told when it turned out later whose call it is; may be nil.
	OnKnown func(ctx context.Context, org, callID string, c event.Contact) error

	// After is the clock of those who wait for connected systems; nil: time.After.
	After func(limit time.Duration) <-chan time.Time

	cache   *cache
	flights flights
	running sync.WaitGroup
	over    context.Context
	end     context.CancelFunc
}

// Open makes the room ready. Close must follow.
func (s *Service) Open() *Service {
	s.cache = newCache()
	if s.After == nil {
		s.After = time.After
	}
	s.flights.known = map[string]*flight{}
	s.over, s.end = context.WithCancel(context.Background())
	return s
}

// Close waits for lookups under way.
func (s *Service) Close() {
	s.end()
	s.running.Wait()
	s.cache.close()
}

// country is where numbers without a country code belong.
func (s *Service) country(ctx context.Context) (string, error) {
	o, err := s.Orgs.Get(ctx, access.Org(ctx))
	return o.Country, err
}

// Named is how a contact is shown in calls and events.
func (c Contact) Named(source string) event.Contact {
	return event.Contact{ID: c.ID, Name: c.Name, Company: c.Company, Source: source}
}

// complete fills in what follows from the rest.
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

// firstIsPrimary leaves exactly one primary in a list.
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
