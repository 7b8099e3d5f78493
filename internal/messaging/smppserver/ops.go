package smppserver

import (
	"context"
	"strings"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/seal"
)

// Operations returns the API operations on applications.
func (s *Service) Operations() []op.Operation {
	return []op.Operation{
		op.New("sms.applications.list", "GET /sms/applications", access.NumbersAdmin,
			"List the programs that send and receive messages by SMPP", s.List),
		op.New("sms.applications.create", "POST /sms/applications", access.NumbersAdmin, "Let a program send and receive messages by SMPP",
			s.Create).Status(201),
		op.New("sms.applications.get", "GET /sms/applications/{id}", access.NumbersAdmin, "Get one of these programs", s.Get),
		op.New("sms.applications.update", "PATCH /sms/applications/{id}", access.NumbersAdmin, "Change one of these programs", s.Update),
		op.Delete("sms.applications.delete", "DELETE /sms/applications/{id}", access.NumbersAdmin, "Let one of these programs in no more",
			s.Delete),
		op.New("sms.applications.rotate_password", "POST /sms/applications/{id}/rotate-password", access.NumbersAdmin,
			"Replace the password; who is bound with the old one is disconnected", s.Rotate),
	}
}

// ListIn is the request for a page of applications.
type ListIn struct{ op.Paging }

// List returns the applications, oldest first.
func (s *Service) List(ctx context.Context, in *ListIn) (*op.Out[op.Page[Application]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	q := s.cfg.DB.Read(ctx)
	of := func() *db.Filter {
		return db.Where(`SELECT `+columns+` FROM sms_applications WHERE org_id = $1`, access.Org(ctx))
	}
	all, err := queryApplications(ctx, q, of().Page("id", false, after.ID, after.ID, in.Limit))
	if err != nil {
		return nil, err
	}
	for i := range all {
		s.addStatus(&all[i])
	}
	page := op.Paged(ctx, in.Paging, all, func(a Application) op.Position { return op.Position{ID: a.ID} })
	return op.WithTotal(page, in.Paging, func() (int, error) { return of().Count(ctx, q) })
}

// addStatus sets the field that is not stored: the number of binds on this node.
func (s *Service) addStatus(a *Application) { a.Bound = s.server.BindCount(a.account()) }

// CreateIn is the request to add an application.
type CreateIn struct{ Body Fresh }

// Fresh describes an application.
type Fresh struct {
	Name            string   `json:"name" doc:"1 to 120 characters" example:"Reminders"`
	Numbers         []string `json:"numbers,omitempty" doc:"Numbers of yours it sends from; all that have messages enabled unless given"`
	MaxBinds        int      `json:"max_binds,omitempty" minimum:"1" maximum:"50" default:"4"`
	RatePerSecond   int      `json:"rate_per_second,omitempty" minimum:"1" maximum:"1000" default:"20"`
	DefaultAlphabet string   `json:"default_alphabet,omitempty" enum:"gsm7,latin1,ascii" default:"gsm7"`
}

// Secret is an application with its password.
type Secret struct {
	Application
	Password string `json:"password" secret:"true" doc:"Shown only this once" example:"x7Kp2mQ9"`
}

// Lengths of the credentials (SMPP 3.4 §5.2.1, §5.2.2): the longest that fit with their NUL.
const (
	systemIDLength = 15
	passwordLength = 8
)

// Create adds an application and returns its credentials.
func (s *Service) Create(ctx context.Context, in *CreateIn) (*op.Out[Secret], error) {
	b, now := in.Body, db.At(s.cfg.Clock.Now())
	a := Application{ID: db.NewID("sma"), Name: strings.TrimSpace(b.Name), SystemID: strings.ToLower(seal.Random(systemIDLength)),
		Enabled: true, Numbers: b.Numbers,
		MaxBinds: b.MaxBinds, RatePerSecond: b.RatePerSecond, DefaultAlphabet: b.DefaultAlphabet, CreatedAt: now, UpdatedAt: now,
		org: access.Org(ctx)}
	password := s.setNewPassword(&a)
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		if err := s.validate(ctx, tx, &a); err != nil {
			return err
		}
		return insert(ctx, tx, a)
	})
	if err != nil {
		return nil, err
	}
	return &op.Out[Secret]{Body: Secret{a, password}, Location: op.Prefix + "/sms/applications/" + a.ID, ETag: op.Tag(a.UpdatedAt)}, nil
}

// setNewPassword sets a random password and returns it.
func (s *Service) setNewPassword(a *Application) string {
	password := seal.Random(passwordLength)
	a.digest = s.passwordDigest(a.SystemID, password)
	return password
}

func (s *Service) passwordDigest(systemID, password string) string {
	return s.cfg.Digester.Digest("smpp " + systemID + " " + password)
}

// OneIn has the id of an application.
type OneIn struct {
	ID string `path:"id" maxLength:"40" example:"sma_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

// Get returns an application.
func (s *Service) Get(ctx context.Context, in *OneIn) (*op.Out[Application], error) {
	a, err := s.find(ctx, s.cfg.DB.Read(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return op.Versioned(a, a.UpdatedAt)
}

func (s *Service) find(ctx context.Context, q db.Querier, id string) (Application, error) {
	a, err := get(ctx, q, access.Org(ctx), id)
	if db.IsNone(err) {
		return a, op.NotFound("application")
	}
	s.addStatus(&a)
	return a, err
}
