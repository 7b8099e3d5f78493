// Package partner lets partners manage the organisations of their customers: plans, users, suspension, and usage
// figures. It gives no access to the content of a child organisation.
package partner

import (
	"context"
	"fmt"
	"slices"
	"time"

	"soniq/internal/identity/auth"
	"soniq/internal/identity/org"
	"soniq/internal/identity/user"
	"soniq/internal/platform/access"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
	"soniq/internal/platform/wiring"
)

// Partner is a child organisation in the partner API.
type Partner struct {
	ID                   string           `json:"id" example:"org_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Name                 string           `json:"name"`
	Plan                 string           `json:"plan" example:"business"`
	AdminEmail           string           `json:"admin_email"`
	AdminUserID          *string          `json:"admin_user_id"`
	CallRecordingEnabled bool             `json:"call_recording_enabled"`
	Status               string           `json:"status" enum:"provisioning,active,suspended,closed"`
	Country              string           `json:"country"`
	Timezone             string           `json:"timezone"`
	Limits               org.Quota        `json:"limits"`
	Usage                Usage            `json:"usage"`
	ExternalReference    *string          `json:"external_reference"`
	SuspendMode          *string          `json:"suspend_mode" enum:"outbound_only,all"`
	SuspendedAt          db.Time          `json:"suspended_at" nullable:"true"`
	SuspendReason        *string          `json:"suspend_reason"`
	ClosedAt             db.Time          `json:"closed_at" nullable:"true"`
	EraseAfter           db.Time          `json:"erase_after" nullable:"true" doc:"Until then a closed organisation can be resumed; then all of it is erased"`
	CreatedAt            db.Time          `json:"created_at"`
	Invitation           *user.Invitation `json:"invitation,omitempty" doc:"Of the administrator, as the organisation is made"`
}

// Usage counts the limited resources that an organisation uses.
type Usage struct {
	Users     int     `json:"users"`
	Numbers   int     `json:"numbers"`
	Devices   int     `json:"devices"`
	StorageGB float64 `json:"storage_gb" doc:"Recordings, voicemail, sounds and exports, in 10⁹ bytes"`
}

// Config holds the dependencies of a Service.
type Config struct {
	DB    *db.DB
	Orgs  *org.Service
	Users *user.Service
	Keys  *auth.Service
	Jobs  *job.Queue
	Clock clock.Clock `wiring:"optional"`
	// Grace is how long a closed organisation can be resumed before it is erased.
	Grace    time.Duration
	Messages Messages
	Files    Files
	// MayDelete is asked before a closed organisation is erased. Its error is that of the job.
	MayDelete clock.DeletionGate
}

// Messages counts the text messages of an organisation in a period.
type Messages interface {
	Count(ctx context.Context, org string, since, until db.Time) (sent, received int, err error)
}

// Files deletes all files of an organisation.
type Files interface {
	RemoveFiles(org string) error
}

// ErasureObserver is notified after an organisation was erased, so that caches drop it.
type ErasureObserver interface {
	OrgErased(org string)
}

// Service manages child organisations. Create it with New. It is safe for concurrent use.
type Service struct {
	cfg       Config
	observers []ErasureObserver
}

// New returns a service.
func New(c Config) *Service {
	wiring.Check(c)
	c.Clock = clock.OrSystem(c.Clock)
	return &Service{cfg: c}
}

// Observe adds an observer. Call it before the first request.
func (s *Service) Observe(o ErasureObserver) { s.observers = append(s.observers, o) }

// Operations returns the API operations of partners.
func (s *Service) Operations() []op.Operation {
	read, write := access.PartnersRead, access.PartnersWrite
	return []op.Operation{
		op.New("partners.create", "POST /partners", write, "Create a child organisation", s.Create).Status(201).Grants("admin_email").
			MayNeedConfirmation(),
		op.New("partners.list", "GET /partners", read, "List child organisations", s.List),
		op.New("partners.get", "GET /partners/{id}", read, "Get one child organisation", s.Show),
		op.New("partners.update", "PATCH /partners/{id}", write, "Change a child organisation", s.Update),
		op.New("partners.close", "DELETE /partners/{id}", write, "Close a child organisation; it is erased unless it is resumed in time",
			s.Close).Status(202).Sensitive(),
		op.New("partners.suspend", "POST /partners/{id}/suspend", write, "Suspend a child organisation", s.Suspend),
		op.New("partners.resume", "POST /partners/{id}/resume", write, "Resume a child organisation that is suspended or closed", s.Resume),
		op.New("partners.stats", "GET /partners/{id}/stats", read, "Figures of a child organisation", s.Stats),
		op.New("partners.users.list", "GET /partners/{id}/users", read, "List the users of a child organisation", s.People),
		op.New("partners.users.create", "POST /partners/{id}/users", write, "Add a user to a child organisation",
			s.AddPerson).Status(201).Grants("role").MayNeedConfirmation(),
		op.New("partners.users.update", "PATCH /partners/{id}/users/{user_id}", write, "Change the role of a user, suspend or resume them",
			s.ChangePerson).Grants("role").MayNeedConfirmation(),
		op.Delete("partners.users.remove", "DELETE /partners/{id}/users/{user_id}", write, "Remove a user of a child organisation",
			s.RemovePerson).MayNeedConfirmation(),
		op.New("partners.keys.create", "POST /partners/{id}/keys", write, "Make an API key of a child organisation",
			s.AddKey).Status(201).Grants("scopes").Sensitive(),
	}
}

// child returns a child organisation of the partner.
func (s *Service) child(ctx context.Context, q db.Querier, id string) (org.Organization, error) {
	o, err := s.cfg.Orgs.Child(ctx, q, access.Org(ctx), id)
	if db.IsNone(err) {
		return o, op.NotFound("organisation")
	}
	if err != nil {
		return o, fmt.Errorf("find child organisation: %w", err)
	}
	return o, nil
}

// openChild returns a child organisation that is not closed.
func (s *Service) openChild(ctx context.Context, q db.Querier, id string) (org.Organization, error) {
	o, err := s.child(ctx, q, id)
	if err == nil && o.Status == org.Closed {
		return o, op.State("the organisation is closed", string(org.Closed), "resume")
	}
	return o, err
}

// within returns a context with the partner's principal acting in a child organisation. It has its own scopes within the child's plan, and
// may give no more there.
func (s *Service) within(ctx context.Context, child org.Organization) context.Context {
	p, _ := access.From(ctx)
	held := slices.DeleteFunc(slices.Clone(p.Scopes), access.Scope.Partner)
	return access.With(ctx, p.ActingIn(child.ID, s.cfg.Orgs.Scopes(child, held)))
}

// managing returns a context in which the partner may do everything to users of a child organisation. It is for what gives nobody a right:
// to suspend, resume and remove users, as a partner may suspend and close the whole organisation.
func managing(ctx context.Context, child org.Organization) context.Context {
	p, _ := access.From(ctx)
	p = p.ActingIn(child.ID, access.RoleScopes(access.MostTrusted))
	p.Role = access.MostTrusted
	return access.With(ctx, p)
}

// record returns the API record of a child organisation.
func (s *Service) record(ctx context.Context, q db.Querier, o org.Organization) (Partner, error) {
	usage, err := usageOf(ctx, q, o.ID)
	if err != nil {
		return Partner{}, fmt.Errorf("find usage: %w", err)
	}
	p := Partner{ID: o.ID, Name: o.Name, Plan: o.Plan, AdminUserID: o.AdminUserID, CallRecordingEnabled: o.Recording.Mode != "off",
		Status: string(o.Status), Country: o.Country, Timezone: o.Timezone, Limits: o.Quota, Usage: usage,
		ExternalReference: o.ExternalReference,
		SuspendMode:       db.Null(o.SuspendMode).Ptr(), SuspendedAt: o.SuspendedAt, SuspendReason: o.SuspendReason, ClosedAt: o.ClosedAt,
		EraseAfter: o.EraseAfter, CreatedAt: o.CreatedAt}
	if o.AdminUserID != nil {
		p.AdminEmail, err = emailOf(ctx, q, o.ID, *o.AdminUserID)
	}
	return p, err
}

func (s *Service) respond(ctx context.Context, q db.Querier, o org.Organization) (*op.Out[Partner], error) {
	p, err := s.record(ctx, q, o)
	if err != nil {
		return nil, err
	}
	return op.Versioned(p, o.UpdatedAt)
}
