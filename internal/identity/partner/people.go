package partner

import (
	"context"

	"soniq/internal/identity/auth"
	"soniq/internal/identity/user"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Person is a user of a child organisation in the partner API.
type Person struct {
	ID        string  `json:"id" example:"usr_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Email     string  `json:"email"`
	Name      string  `json:"name"`
	Role      string  `json:"role" enum:"owner,admin,supervisor,agent,viewer"`
	Status    string  `json:"status" enum:"invited,active,suspended,removed"`
	CreatedAt db.Time `json:"created_at"`
}

func personOf(u user.User) Person {
	return Person{u.ID, u.Email, u.Name, u.Role, u.Status, u.CreatedAt}
}

// PeopleIn selects users of a child organisation.
type PeopleIn struct {
	OneIn
	op.Paging
}

// People returns the users of a child organisation who are not removed, in the order in which they were added.
func (s *Service) People(ctx context.Context, in *PeopleIn) (*op.Out[op.Page[Person]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	q := s.cfg.DB.Read(ctx)
	o, err := s.child(ctx, q, in.ID)
	if err != nil {
		return nil, err
	}
	rows, err := people(ctx, q, o.ID, after.ID, in.Limit)
	if err != nil {
		return nil, err
	}
	page := op.Paged(ctx, in.Paging, rows, func(p Person) op.Position { return op.Position{ID: p.ID} })
	return op.WithTotal(page, in.Paging, func() (int, error) { return peopleFilter(o.ID).Count(ctx, q) })
}

// AddPersonIn is the input of AddPerson.
type AddPersonIn struct {
	OneIn
	Body user.Fresh
}

// AddPerson adds a user to a child organisation. The response contains the password of the user's phone, this once.
func (s *Service) AddPerson(ctx context.Context, in *AddPersonIn) (out *op.Out[user.User], err error) {
	err = s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		o, err := s.openChild(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		u, err := s.cfg.Users.Create(s.within(ctx, o), o.ID, in.Body)
		out = &op.Out[user.User]{Body: u, Location: op.Prefix + "/partners/" + o.ID + "/users/" + u.ID, ETag: op.Tag(u.UpdatedAt)}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// PersonIn identifies a user of a child organisation.
type PersonIn struct {
	OneIn
	UserID string `path:"user_id" example:"usr_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	op.Match
}

// ChangePersonIn is the input of ChangePerson.
type ChangePersonIn struct {
	PersonIn
	Body PersonPatch
}

// PersonPatch holds the fields of a user that a partner may change.
type PersonPatch struct {
	Role   op.Change[string] `json:"role,omitzero" doc:"owner, admin, supervisor, agent or viewer"`
	Status op.Change[string] `json:"status,omitzero" doc:"suspended: nothing of the user works but emergency calls; active: it works again"`
}

// ChangePerson changes the role of a user, or suspends or resumes the user.
func (s *Service) ChangePerson(ctx context.Context, in *ChangePersonIn) (out *op.Out[Person], err error) {
	err = s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		o, err := s.openChild(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		as := managing(ctx, o)
		if in.Body.Role.Set {
			as = s.within(ctx, o)
		}
		changed, err := s.cfg.Users.Update(as, &user.UpdateIn{OneIn: user.OneIn{ID: in.UserID},
			Match: in.Match, Body: user.Patch{Role: in.Body.Role, Status: in.Body.Status}})
		if err != nil {
			return err
		}
		out = &op.Out[Person]{Body: personOf(changed.Body), ETag: changed.ETag}
		return nil
	})
	return out, err
}

// RemovePerson removes a user of a child organisation in the same way as the organisation itself would.
func (s *Service) RemovePerson(ctx context.Context, in *PersonIn) error {
	return s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		o, err := s.openChild(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		return s.cfg.Users.Remove(managing(ctx, o), &user.RemoveIn{OneIn: user.OneIn{ID: in.UserID}, Match: in.Match})
	})
}

// AddKeyIn is the input of AddKey.
type AddKeyIn struct {
	OneIn
	Body FreshKey
}

// FreshKey describes a key of a child organisation.
type FreshKey struct {
	Name       string         `json:"name" doc:"What it is for" example:"set-up"`
	Scopes     []access.Scope `json:"scopes" nullable:"false" doc:"No more than the partner's key holds and the plan has; never those of partners"`
	AllowedIPs []string       `json:"allowed_ips,omitempty" doc:"Addresses and networks it may be used from"`
	ExpiresAt  db.Time        `json:"expires_at,omitzero"`
}

// AddKey creates an API key of a child organisation. Its permissions are at most those of the partner's key.
func (s *Service) AddKey(ctx context.Context, in *AddKeyIn) (out *op.Out[auth.Key], err error) {
	err = s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		o, err := s.openChild(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		b := in.Body
		out, err = s.cfg.Keys.Create(s.within(ctx, o),
			&auth.CreateIn{Body: auth.NewKey{Name: b.Name, Scopes: b.Scopes,
				AllowedIPs: b.AllowedIPs, ExpiresAt: b.ExpiresAt}})
		return err
	})
	return out, err
}
