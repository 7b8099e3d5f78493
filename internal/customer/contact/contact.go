// Package contact stores the contacts of an organisation, looks up numbers and e-mail addresses in them and in
// connected systems, and publishes screen pops for ringing calls.
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

// Service manages contacts. Its function fields are set before the first request; a field may be nil only if its
// comment says so. It is safe for concurrent use.
type Service struct {
	DB     *db.DB
	Orgs   *org.Service
	Outbox *event.Outbox
	Jobs   *job.Queue
	Files  Files
	Log    *slog.Logger
	Now    func() time.Time

	// Sources returns the systems of an organisation, in the order of their priority. nil: own contacts only.
	Sources func(ctx context.Context, org string) ([]Source, error)
	// Refs returns the records of contacts in connected systems, by contact. May be nil.
	Refs func(ctx context.Context, q db.Querier, org string, contacts []string) (map[string][]Ref, error)
	// OnSave is called when a contact is created or changed, in the same transaction. only names connections; nil
	// means all. May be nil.
	OnSave func(ctx context.Context, tx db.Querier, c Contact, only []string) error
	// CanSave returns violations for those of the named connections that cannot be written to. May be nil.
	CanSave func(ctx context.Context, org string, connections []string) ([]op.Violation, error)
	// OnNote is called for a note that is to be written to connected systems, in the same transaction. May be nil.
	OnNote func(ctx context.Context, tx db.Querier, org string, n call.Note) error
	// OnNoteAdded is called for every note, in the transaction that writes it. May be nil.
	OnNoteAdded func(ctx context.Context, tx db.Querier, org string, n call.Note) error
	// NoteSyncs returns the sync status of notes in connected systems. May be nil.
	NoteSyncs func(ctx context.Context, q db.Querier, org string, notes []string) (map[string][]call.NoteSync, error)
	// OnMerge and OnDelete are called in the transaction that merges two contacts, or deletes one.
	OnMerge  []func(ctx context.Context, tx db.Querier, org, from string, into Contact) error
	OnDelete []func(ctx context.Context, tx db.Querier, org, id string) error
	// OnErase is called before OnDelete if a contact is erased and not only deleted.
	OnErase []func(ctx context.Context, tx db.Querier, org, id string) error
	// Erase deletes the memory of a number in E.164. Must be set.
	Erase func(ctx context.Context, tx db.Querier, org, number string) error
	// TimelineSources return the items of other packages for a timeline.
	TimelineSources []func(ctx context.Context, org string, q TimelineQuery) ([]Item, error)
	// History returns earlier calls and the memory of a number for screen pops. memory reports whether the caller may
	// read the memory. May be nil.
	History func(ctx context.Context, org, number string, memory bool) (CallHistory, error)
	// CallNumber returns the external number of a call; db.ErrNone if there is no such call.
	CallNumber func(ctx context.Context, org, callID string) (number string, err error)
	// CallQueue returns the queue through which a call came; nil if there is none, or the call is unknown. May be
	// nil.
	CallQueue func(ctx context.Context, org, callID string) (*call.Named, error)
	// OnIdentified is called when the contact of a call is found after its start. May be nil.
	OnIdentified func(ctx context.Context, org, callID string, c event.Contact) error

	// After is the timer for waits for connected systems; nil: time.After.
	After func(limit time.Duration) <-chan time.Time

	results  *cache
	inFlight singleflightGroup
	running  sync.WaitGroup
	stopCtx  context.Context
	stop     context.CancelFunc
}

// Open initialises the service. Close must follow.
func (s *Service) Open() *Service {
	s.results = newCache()
	if s.After == nil {
		s.After = time.After
	}
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
	o, err := s.Orgs.Get(ctx, access.Org(ctx))
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
